// SPDX-License-Identifier: LGPL-2.1-or-later
import { get, segment } from "../../api/client";
import { useLoad } from "../../api/hooks";
import type { Sandbox } from "../../api/types";
import { href } from "../../app/route";
import { useMay } from "../../app/session";
import { AirGap } from "../../parts/airgap";
import { Loading, Panel, ProblemNote } from "../../parts/note";
import { Kill } from "../sandboxes/columns";
import { EventsPanel } from "./events";
import { Facts } from "./facts";
import { FlowsPanel } from "./flows";
import { LimitsPanel } from "./limits";
import { NetworkPanel } from "./network";
import { OutputPanel } from "./output";
import { PolicyPanel } from "./policy";
import { SelftestPanel } from "./selftest";
import { UsagePanel } from "./usage";

const POLL_MS = 2000;

export function SandboxView({ id }: { id: string }) {
	const { data, problem, reload } = useLoad(() => get<Sandbox>(`/sandboxes/${segment(id)}`), [id], POLL_MS);
	const may = useMay();

	return (
		<>
			<p class="crumbs">
				<a href={href("sandboxes")}>Sandboxes</a>
			</p>
			<h1 tabIndex={-1}>
				Sandbox <code>{id}</code>
			</h1>
			<ProblemNote problem={problem} />
			{!data && !problem ? <Loading what="the sandbox" /> : null}
			{data ? (
				<>
					<Panel
						title="State"
						aside={
							data.live ? (
								<div class="controls">
									<span class="labelled">
										Air gap
										<AirGap sandbox={data} disabled={!may.change} onChanged={reload} />
									</span>
									{may.change ? <Kill sandbox={data} onKilled={reload} /> : null}
								</div>
							) : null
						}
					>
						<p role="status" class="ended">
							{data.live ? "" : "This sandbox has ended."}
						</p>
						<Facts sandbox={data} mayChange={may.change} reload={reload} />
					</Panel>
					{data.live ? <UsagePanel sandbox={data} /> : null}
					<FlowsPanel sandbox={data} />
					<PolicyPanel sandbox={data} />
					{data.live ? <NetworkPanel sandbox={data} mayChange={may.change} reload={reload} /> : null}
					<EventsPanel id={id} />
					<OutputPanel id={id} />
					<div class="columns">
						<LimitsPanel sandbox={data} />
						<SelftestPanel sandbox={data} />
					</div>
				</>
			) : null}
		</>
	);
}
