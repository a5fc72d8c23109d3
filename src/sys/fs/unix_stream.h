/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_FS_UNIX_STREAM_H
#define SBX_SYS_FS_UNIX_STREAM_H

/* A connection to the stream socket @path, close-on-exec and non-blocking. fd; -ENAMETOOLONG;
 * -EAGAIN: its queue is full; another -errno of connect(2). */
int sbx_unix_connect(const char *path);

#endif
