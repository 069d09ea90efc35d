// Prints one CycloneDX document of what a release is made of: the modules that are linked into the program, and the
// packages that are bundled into the page.
// usage: node sbom.mjs MODULES.json PACKAGES.json VERSION
import { readFileSync } from "node:fs";

const [modules, packages] = process.argv.slice(2, 4).map((file) => JSON.parse(readFileSync(file, "utf8")));
const version = process.argv[4];
const program = modules.metadata.component;
const page = packages.metadata.component;
// Names of packages are unique among packages only.
const named = (ref) => `npm:${ref}`;

page.type = "application";
page.name = "loadstone-page";
page["bom-ref"] = named(page["bom-ref"]);
page.version = program.version = version;
delete page.purl;
const components = [
	...modules.components,
	page,
	// Where a package was fetched from is the business of the machine that did it.
	...packages.components.map(({ externalReferences, ...c }) => ({ ...c, "bom-ref": named(c["bom-ref"]) })),
];
const pageNeeds = packages.dependencies.map((d) => ({ ref: named(d.ref), dependsOn: (d.dependsOn ?? []).map(named) }));
const programNeeds = modules.dependencies.map((d) =>
	d.ref === program["bom-ref"] ? { ...d, dependsOn: [...(d.dependsOn ?? []), page["bom-ref"]] } : d,
);

const refs = components.map((c) => c["bom-ref"]);
const twice = refs.filter((r, i) => refs.indexOf(r) !== i);
if (twice.length > 0) throw new Error(`components are there twice: ${twice.join(", ")}`);
if (modules.components.length === 0 || packages.components.length === 0) throw new Error("a half has no components");

console.log(JSON.stringify({
	$schema: modules.$schema, bomFormat: "CycloneDX", specVersion: modules.specVersion, version: 1,
	serialNumber: modules.serialNumber,
	metadata: { ...modules.metadata, component: program },
	components, dependencies: [...programNeeds, ...pageNeeds],
}, null, 2));
