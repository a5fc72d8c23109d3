// SPDX-License-Identifier: LGPL-2.1-or-later
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "../api/types";

export const SessionContext = createContext<Session>({ name: "", role: "viewer", workspace: null });

// Whether the caller may change sandboxes and rules, or floors. The service judges; this only spares buttons that
// would be refused.
export function useMay(): { change: boolean; administer: boolean; session: Session } {
	const session = useContext(SessionContext);
	return { session, change: session.role !== "viewer", administer: session.role === "admin" };
}
