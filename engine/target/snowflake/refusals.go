package snowflake

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	numberPrivileges = 3001 // Insufficient privileges
	numberInvisible  = 3041 // the name is taken by what the role may not see
	numberNotEnabled = 1423 // invalid property; the feature is not enabled
)

// featureStatements are those that need more than SQL, with what is to be done where
// an account does not take them.
var featureStatements = []struct {
	text          *regexp.Regexp
	message, hint string
}{
	{regexp.MustCompile(`(?i)^\s*CREATE\s+(?:OR\s+REPLACE\s+)?HYBRID\s+TABLE\b`), "The account makes no hybrid tables",
		"Hybrid tables are there in the commercial regions of AWS and Azure, and not in trial accounts (Snowflake's " +
			"documentation as of 2026). Use another account, or the adapter snowflake_standard."},
	{regexp.MustCompile(`(?i)^\s*CREATE\s+(?:OR\s+REPLACE\s+)?INTERACTIVE\s+TABLE\b`),
		"The account makes no interactive tables",
		"Snowflake's page on the availability of interactive tables lists the regions. Use an account in one of them, or " +
			"the adapter snowflake_standard."},
	{regexp.MustCompile(`(?i)^\s*ALTER\s+TABLE\b.*\bSEARCH\s+OPTIMIZATION\b`), "The account has no search optimization",
		"It needs Enterprise edition: leave target.params.search_optimization out."},
	{regexp.MustCompile(`(?i)^\s*(?:CREATE|ALTER)\s+(?:INTERACTIVE\s+)?WAREHOUSE\b`),
		"The account's edition does not have this property of a warehouse",
		"Warehouses of several clusters and query acceleration need Enterprise edition."},
}

// refused words what an account says to a statement of preparation, where more can
// be said than that: rights, and features that the account's edition, region or kind lacks.
func (d *database) refused(sql string, err error) error {
	var known *engine.Error
	var e *sf.SnowflakeError
	if errors.As(err, &known) || !errors.As(err, &e) {
		return d.userError("executing", err)
	}
	said := sentence(e)
	out := &engine.Error{Code: engine.CodeTarget, Cause: err}
	lower := strings.ToLower(said)
	switch {
	case e.Number == numberInvisible:
		out.Message = fmt.Sprintf("The name is taken by something that the role %s may not see: %s", d.role(), said)
		out.Hint = fmt.Sprintf("Choose another name, or have the role %s granted rights on it.", d.role())
		return out
	case e.Number == numberPrivileges:
		out.Message = fmt.Sprintf("The role %s may not do that: %s", d.role(), said)
		out.Hint = d.grantHint(sql)
		return out
	case e.Number == numberNotEnabled, strings.Contains(lower, "unsupported feature"),
		strings.Contains(lower, "not enabled"), strings.Contains(lower, "trial account"):
		for _, f := range featureStatements {
			if f.text.MatchString(sql) {
				out.Message, out.Hint = f.message+": "+said, f.hint
				return out
			}
		}
	}
	return d.userError("executing", err)
}

func (d *database) role() string { return cmp.Or(d.settings.Role, "of the session") }

// grantHint says how to learn which right is missing: Snowflake tells itself.
func (d *database) grantHint(sql string) string {
	return fmt.Sprintf("Preflight names the GRANT where it can; else Snowflake lists what the role %s is missing: CALL "+
		"EXPLAIN_PRIVILEGES(statement => '…', missing_only => true). The statement is: %s", d.role(), shortStatement(sql))
}
