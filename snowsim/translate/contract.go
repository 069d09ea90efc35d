package translate

import "strings"

// Contract is what decides which features an account has. The zero value has all.
type Contract struct {
	// Standard edition: warehouses of several clusters, query acceleration and search
	// optimization belong to Enterprise edition.
	Standard bool
	// Trial accounts have no hybrid tables.
	Trial bool
	// Region is what CURRENT_REGION() answers, "AWS_US_WEST_2"; empty is "SNOWSIM", a place of
	// no cloud's. Google Cloud's regions and those of the US government have no hybrid tables.
	Region string
}

// HybridTables reports whether hybrid tables can be made, as Snowflake documents it.
func (c Contract) HybridTables() bool {
	return !c.Trial && !strings.HasPrefix(c.Region, "GCP_") && !strings.Contains(c.Region, "GOV")
}

// CurrentRegion is what CURRENT_REGION() answers.
func (c Contract) CurrentRegion() string {
	if c.Region == "" {
		return "SNOWSIM"
	}
	return c.Region
}
