//go:build !wasip1

package sdk

import "embed"

// Source holds the SDKs of all languages as they lie in this folder, for `loadstone
// plugin new`: a project gets a copy, so that it builds anywhere and stays as it is
// when Loadstone is updated. Guests do not link it.
//
//go:embed *.go abi gen jsondoc params sdktest sqltext
//go:embed c/loadstone.h
//go:embed assemblyscript/assembly assemblyscript/package.json
//go:embed rust/Cargo.toml rust/src
var Source embed.FS
