// SPDX-License-Identifier: GPL-2.0-or-later
// pages.mjs MODULES SITE: opens the index that `fettle report --all` wrote as somebody does who got the folder: from the
// file. Sorts, searches, follows the links to a tuning log, to its raw logs and to the nights; no page may run a script of
// somebody else's, ask for anything beyond its own folder, scroll sideways on a telephone, or fail axe-core seriously.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, site] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const here = pathToFileURL(site).href + "/";
const above = new URL("../", here).href;
const browser = await require("playwright-core").chromium.launch({
	executablePath: "/usr/bin/chromium",
	args: ["--no-sandbox"],
});

// A page that tells of whatever it must not do.
async function open(options, url) {
	const page = await browser.newPage(options);
	const bad = [];
	page.on("request", r => r.url().startsWith(above) || bad.push(`asked for ${r.url()}`));
	page.on("console", m => m.type() === "error" && bad.push(m.text()));
	page.on("pageerror", e => bad.push(String(e)));
	page.on("dialog", d => { bad.push(`said ${d.message()}`); d.dismiss(); });
	await page.goto(url);
	page.check = async () => {
		assert.deepEqual(bad, []);
		assert.notEqual(await page.title(), "hit");
	};
	return page;
}

const names = page => page.locator("tbody tr:not([hidden]) a.name").evaluateAll(v => v.map(a => a.getAttribute("href")));
const cells = (page, n) => page.locator(`tbody tr td:nth-child(${n})`).evaluateAll(v => v.map(c => c.dataset.v));

async function index() {
	const page = await open({}, here + "index.html");
	const newest = ["ws/campaign-3.html", "ws/campaign-2.html", "ws/campaign-1.html"];
	assert.deepEqual(await names(page), newest);

	const effect = page.getByRole("button", { name: "effect, interval" });
	await effect.click();
	assert.equal(await page.locator("th[aria-sort]").textContent(), "effect, interval");
	let v = await cells(page, 6);
	assert.ok(+v[0] >= +v[1] && v[2] === "", `largest effect first, none last: ${v}`);
	await effect.press("Enter");
	assert.equal(await page.locator("th[aria-sort=ascending]").count(), 1);
	v = await cells(page, 6);
	assert.ok(+v[0] <= +v[1] && v[2] === "", `smallest effect first, none last: ${v}`);
	await page.getByRole("button", { name: "started" }).click();
	assert.deepEqual(await names(page), newest);

	await page.getByLabel("Search").fill("Stays DEFAULT");
	assert.deepEqual(await names(page), [newest[1]]);
	assert.equal(await page.getByRole("status").textContent(), "1 / 3");
	await page.getByLabel("Search").fill("<img src=x");
	assert.deepEqual(await names(page), [newest[0]]);
	await page.getByLabel("Search").fill("");
	assert.deepEqual(await names(page), newest);

	await page.locator("a.name").last().click();
	assert.match(await page.locator("h1").textContent(), /^Tuning log: plain$/);
	await page.locator("a[href*='blocks/']").first().click();
	await page.getByText("done.json", { exact: true }).click();
	assert.match(page.url(), /\/team\/ws\/blocks\/[0-9.]+\/done\.json$/);
	assert.match(await page.locator("body").textContent(), /fettle\.done\/1/);
	await page.goto(here + "ws/campaign-1.html");
	await page.getByRole("link", { name: "All campaigns" }).click();
	await page.getByRole("link", { name: /series over nights/ }).click();
	assert.match(await page.locator("h1").textContent(), /over nights/);
	await page.check();
	await page.close();
}

async function without_scripts() {
	const page = await open({ javaScriptEnabled: false }, here + "index.html");
	assert.equal((await names(page)).length, 3);
	assert.equal(await page.locator("input").isVisible(), false);
	assert.equal(await page.locator("th button").count(), 0);
	await page.close();
}

async function is_clean(name, width, colorScheme) {
	const page = await open({ viewport: { width, height: 900 }, colorScheme }, here + name);
	const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	assert.ok(wide <= 0, `${name} is ${wide} pixels too wide at ${width}`);
	await page.evaluate(axe);
	const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
	const serious = violations.filter(v => ["serious", "critical"].includes(v.impact))
		.map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 200)).slice(0, 3).join("\n\t")}`);
	assert.deepEqual(serious, [], `${name} at ${width}, ${colorScheme}`);
	await page.check();
	await page.close();
}

try {
	await index();
	await without_scripts();
	for (const name of ["index.html", "ws/campaign-1.html", "ws/campaign-3.html", "ws-2/nights.html"])
		for (const width of [1280, 400])
			for (const scheme of ["light", "dark"])
				await is_clean(name, width, scheme);
} finally {
	await browser.close();
}
console.log("pages: fine");
