//go:build !nosnowflake

package bundled

import "embed"

//go:embed all:snowflake
var snowflake embed.FS

func init() { folders = append(folders, folder{snowflake, "snowflake"}) }
