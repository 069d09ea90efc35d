package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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

// HybridTables reports whether hybrid tables can be created, as Snowflake documents it.
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

// Denied is a privilege that a role does not have.
type Denied struct {
	// Role is who; empty is every role.
	Role string
	// Privilege is SELECT, INSERT, UPDATE, DELETE, CREATE TABLE, CREATE WAREHOUSE,
	// MONITOR, OPERATE, USAGE … "IMPORTED PRIVILEGES" is needed for SNOWFLAKE.ACCOUNT_USAGE.
	Privilege string
	// Object is the name of the table, warehouse or schema; empty is any.
	Object string
}

var deniedForm = regexp.MustCompile(`^(?i)\s*([A-Z][A-Z ]*?)(?:\s+ON\s+(\S+))?(?:\s+FROM\s+(\S+))?\s*$`)

// ParseDenied reads PRIVILEGE [ON object] [FROM role], "UPDATE ON ORDERS": names are read as
// unquoted ones, without database and schema.
func ParseDenied(text string) (Denied, error) {
	m := deniedForm.FindStringSubmatch(text)
	if m == nil {
		return Denied{}, fmt.Errorf("%q is not PRIVILEGE [ON object] [FROM role]", text)
	}
	d := Denied{Role: strings.ToUpper(m[3]), Privilege: strings.ToUpper(strings.Join(strings.Fields(m[1]), " ")),
		Object: strings.ToUpper(m[2])}
	for _, known := range privilegesOf {
		if slices.Contains(known, d.Privilege) {
			return d, nil
		}
	}
	switch d.Privilege {
	case "CREATE WAREHOUSE", "CREATE DATABASE", "IMPORTED PRIVILEGES", "OWNERSHIP":
		return d, nil
	}
	return Denied{}, fmt.Errorf("there is no privilege %q here", d.Privilege)
}

// privilegesOf are the privileges of ALL, by kind of object.
var privilegesOf = map[string][]string{
	"TABLE":     {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES"},
	"VIEW":      {"SELECT", "REFERENCES"},
	"WAREHOUSE": {"USAGE", "MONITOR", "OPERATE", "MODIFY", "MANAGE ATTACHED TABLES"},
	"SCHEMA": {"USAGE", "MONITOR", "MODIFY", "CREATE TABLE", "CREATE HYBRID TABLE", "CREATE INTERACTIVE TABLE",
		"CREATE VIEW", "ADD SEARCH OPTIMIZATION"},
	"DATABASE": {"USAGE", "MONITOR", "MODIFY", "CREATE SCHEMA"},
}
