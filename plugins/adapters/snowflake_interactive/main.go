// Command snowflake_interactive is the adapter plugin for interactive tables of Snowflake.
package main

import (
	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake"
	"github.com/loadstone-db/loadstone/sdk"
)

func init() { sdk.ServeAdapter(snowflake.New(snowflake.Interactive)) }

func main() {}
