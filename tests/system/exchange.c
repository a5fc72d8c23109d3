/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two names trade places as fast as the kernel can, until standard input ends: the attack on a
 * check that comes before the use. Prints how often they did. Usage: exchange A B
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int stop;

static void *wait_for_end(void *unused)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	atomic_store(&stop, 1);
	return unused;
}

int main(int argc, char **argv)
{
	unsigned long n = 0;
	pthread_t thread;

	if (argc != 3 || pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
		return 2;
	while (!atomic_load(&stop)) {
		if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) < 0) {
			perror("exchange");
			return 1;
		}
		n++;
	}
	if (n % 2) /* leave them as they were */
		renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
	return printf("%lu\n", n) < 0;
}
