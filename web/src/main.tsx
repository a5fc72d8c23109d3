// SPDX-License-Identifier: LGPL-2.1-or-later
import { render } from "preact";
import { App } from "./app/app";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/layout.css";
import "./style/parts.css";
import "./style/tables.css";
import "./style/cards.css";
import "./style/forms.css";
import "./style/views.css";

render(<App />, document.getElementById("page")!);
