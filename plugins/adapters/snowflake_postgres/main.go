// Command snowflake_postgres is the adapter plugin for tables of Snowflake
// Postgres, which is Postgres and speaks its protocol.
package main

import (
	"github.com/loadstone-db/loadstone/plugins/adapters/pgtable"
	"github.com/loadstone-db/loadstone/sdk"
)

func init() {
	sdk.ServeAdapter(pgtable.Adapter{Families: true, Described: sdk.Manifest{
		Name: "snowflake_postgres", Version: "1.0.0", Title: "Snowflake Postgres table", Author: "Loadstone",
		Description: "Tables of a Snowflake Postgres instance. It speaks the Postgres protocol, so the connection is one " +
			"for postgres; keys are enforced, and every kind of operation is supported.",
	}})
}

func main() {}
