// SPDX-License-Identifier: LGPL-2.1-or-later
// One script and one style sheet with fixed names, so that the service and the installation can name them.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The licences of what is bundled ask to be distributed with it.
function licenses() {
	return {
		name: "licenses",
		generateBundle() {
			const texts = ["preact", "uplot"].map(
				(name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8")}`,
			);
			this.emitFile({ type: "asset", fileName: "licenses.txt", source: texts.join("\n\n") });
		},
	};
}

export default defineConfig({
	base: "./",
	esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
	plugins: [licenses()],
	build: {
		outDir: "../dist",
		emptyOutDir: true,
		target: "es2022",
		modulePreload: false,
		assetsInlineLimit: 0,
		cssCodeSplit: false,
		rollupOptions: {
			output: { entryFileNames: "page.js", assetFileNames: "page[extname]", inlineDynamicImports: true },
		},
	},
});
