//! The bill of materials in CycloneDX 1.5, for tools that find vulnerable libraries.

use std::fs;

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, Package};
use serde_json::{Value, json};

use super::Release;
use super::dependencies::linked;

pub fn write(release: &Release, metadata: &Metadata) -> Result<()> {
    let name = format!("foreread-{}.cdx.json", release.version);
    let text = serde_json::to_string_pretty(&document(release, metadata)?)?;
    fs::write(release.directory.join(name), text + "\n")?;
    Ok(())
}

fn document(release: &Release, metadata: &Metadata) -> Result<Value> {
    let packages = linked(metadata)?;
    let outside = packages.iter().filter(|package| package.source.is_some());
    let components: Vec<Value> = outside.map(|package| component(package)).collect();
    let resolve = metadata.resolve.as_ref().context("cargo metadata resolves nothing")?;
    let reference = |package: &Package| purl(package.name.as_str(), &package.version.to_string());
    let dependencies: Vec<Value> = packages
        .iter()
        .filter_map(|package| {
            let node = resolve.nodes.iter().find(|node| node.id == package.id)?;
            let used = packages.iter().filter(|other| node.dependencies.contains(&other.id));
            let used: Vec<String> = used.map(|used| reference(used)).collect();
            Some(json!({ "ref": reference(package), "dependsOn": used }))
        })
        .collect();
    let own = purl("foreread", &release.version);
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": own,
            "name": "foreread",
            "version": release.version,
            "purl": own,
            "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
        }},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Package) -> Value {
    let version = package.version.to_string();
    let purl = purl(package.name.as_str(), &version);
    let licence = package.license.as_deref().unwrap_or_default().replace('/', " OR ");
    let licence = licence.split_whitespace().collect::<Vec<_>>().join(" ");
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": package.name.as_str(),
        "version": version,
        "purl": purl,
        "licenses": [{ "expression": licence }],
    })
}

fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}
