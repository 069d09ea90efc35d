// Command snowflake_standard is the adapter plugin for standard tables of Snowflake.
package main

import (
	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake"
	"github.com/loadstone-db/loadstone/sdk"
)

func init() { sdk.ServeAdapter(snowflake.New(snowflake.Standard)) }

func main() {}
