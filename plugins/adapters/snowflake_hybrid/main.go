// Command snowflake_hybrid is the adapter plugin for hybrid tables of Snowflake.
package main

import (
	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake"
	"github.com/loadstone-db/loadstone/sdk"
)

func init() { sdk.ServeAdapter(snowflake.New(snowflake.Hybrid)) }

func main() {}
