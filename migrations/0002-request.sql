-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- The request that was refused.
--
--   request  method and path, "PUT /p", of a request to a terminated host, and the secret that it was
--            refused for; NULL for every other event
ALTER TABLE sandbox_egress_event ADD COLUMN request TEXT;
