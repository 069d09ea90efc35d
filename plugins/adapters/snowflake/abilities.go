package snowflake

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// What a server may lack, in the words of the host, which found it out when it
// connected. An account lacks nothing; an emulator of one answers some of it.
const (
	noWarehouses = "warehouses"
	noGrants     = "grants"
	noHistory    = "history"
	noSwap       = "swap"
)

// missesAbility reports that the server of a request does not have an ability.
func missesAbility(req *jsondoc.Value, ability string) bool {
	return slices.Contains(req.Get("lacks").Strings(), ability)
}

// checkAbilities names what preflight did not look at, because the server cannot say it.
func checkAbilities(f findings, req *jsondoc.Value) {
	for _, c := range [...]struct{ ability, check, missed string }{
		{noWarehouses, "warehouse", "it has no warehouses, so none is resumed, polled or priced"},
		{noGrants, "privileges", "it does not tell what is granted to whom, so a missing right shows only when it is needed"},
		{noHistory, "enrichment", "it keeps no history of single queries, so nothing is joined with one after the run"},
	} {
		if missesAbility(req, c.ability) {
			f.add(c.check, "warning", "Not checked: the server is an emulator of Snowflake, and "+c.missed+".",
				"use an account, or the stand-in (loadstone snowsim), where that matters", "target.connection")
		}
	}
}

// where is whereQuery as the server understands it.
func where(req *jsondoc.Value) string {
	if missesAbility(req, noWarehouses) {
		return strings.Replace(whereQuery.SQL, "CURRENT_WAREHOUSE()", "NULL", 1)
	}
	return whereQuery.SQL
}
