// Command postgres is the adapter plugin for ordinary Postgres tables.
package main

import (
	"github.com/loadstone-db/loadstone/plugins/adapters/pgtable"
	"github.com/loadstone-db/loadstone/sdk"
)

func init() {
	sdk.ServeAdapter(pgtable.Adapter{Described: sdk.Manifest{
		Name: "postgres", Version: "1.0.0", Title: "Postgres table", Author: "Loadstone",
		Description: "Ordinary, partitioned and foreign tables and views of Postgres 12 and later.",
	}})
}

func main() {}
