package translate

import (
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// Account is what decides which features there are. The zero value has all.
type Account struct {
	// Standard edition: warehouses of several clusters, query acceleration and search
	// optimization belong to Enterprise edition.
	Standard bool
	// Trial accounts have no hybrid tables.
	Trial bool
	// Region is what CURRENT_REGION() answers, "AWS_US_WEST_2"; empty is "SNOWSIM", a place of
	// no cloud's. Google Cloud's regions and those of the US government have no hybrid tables.
	Region string
}

// hybridTables reports whether hybrid tables can be made, as Snowflake documents it.
func (a Account) hybridTables() bool {
	return !a.Trial && !strings.HasPrefix(a.Region, "GCP_") && !strings.Contains(a.Region, "GOV")
}

func (a Account) region() string {
	if a.Region == "" {
		return "SNOWSIM"
	}
	return a.Region
}

// needsEnterprise refuses a property of a warehouse on Standard edition.
func (p *parser) needsEnterprise(property, feature string) {
	if p.t.account.Standard {
		p.fail(plan.CompilationError("001423", "22023", "invalid property '%s'; feature '%s' not enabled", property, feature))
	}
}
