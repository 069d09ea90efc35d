package snowflake

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// parameter is a session parameter with the value that every session of ours has.
type parameter struct {
	name, value string
	// text: ALTER SESSION writes the value in quotes.
	text bool
}

// defaultStatementTimeout is Snowflake's own STATEMENT_TIMEOUT_IN_SECONDS, for databases without a statement timeout.
const defaultStatementTimeout = 172_800

// lockTimeout is Snowflake's own LOCK_TIMEOUT, in seconds.
const lockTimeout = "43200"

// sessionParameters are what an account's or a user's default could otherwise decide about a run: whether
// statements are committed, how text becomes a time, what a quoted name is, how many rows a result has. Where a run
// does not ask for anything the value is Snowflake's documented default.
func (d *database) sessionParameters() []parameter {
	timeout := defaultStatementTimeout
	if d.cfg.StatementTimeout > 0 {
		timeout = int((d.cfg.StatementTimeout + time.Second - 1) / time.Second)
	}
	const zoned = "YYYY-MM-DD HH24:MI:SS.FF3 TZHTZM"
	return []parameter{
		{"QUERY_TAG", d.tag(), true},
		{"AUTOCOMMIT", "true", false},
		{"TRANSACTION_ABORT_ON_ERROR", "false", false},
		// A statement whose client has gone is of no use to a run.
		{"ABORT_DETACHED_QUERY", "true", false},
		{"USE_CACHED_RESULT", "false", false},
		{"ROWS_PER_RESULTSET", "0", false},
		{"MULTI_STATEMENT_COUNT", "1", false},
		{"STATEMENT_TIMEOUT_IN_SECONDS", strconv.Itoa(timeout), false},
		{"STATEMENT_QUEUED_TIMEOUT_IN_SECONDS", "0", false},
		{"LOCK_TIMEOUT", lockTimeout, false},
		{"HYBRID_TABLE_LOCK_TIMEOUT", "3600", false},
		{"QUOTED_IDENTIFIERS_IGNORE_CASE", "false", false},
		{"TIMEZONE", "UTC", true},
		{"TIMESTAMP_TYPE_MAPPING", "TIMESTAMP_NTZ", true},
		{"TIMESTAMP_DAY_IS_ALWAYS_24H", "false", false},
		{"TWO_DIGIT_CENTURY_START", "1970", false},
		{"WEEK_START", "0", false},
		{"WEEK_OF_YEAR_POLICY", "0", false},
		{"DATE_INPUT_FORMAT", "AUTO", true},
		{"TIME_INPUT_FORMAT", "AUTO", true},
		{"TIMESTAMP_INPUT_FORMAT", "AUTO", true},
		{"DATE_OUTPUT_FORMAT", "YYYY-MM-DD", true},
		{"TIME_OUTPUT_FORMAT", "HH24:MI:SS", true},
		{"TIMESTAMP_OUTPUT_FORMAT", zoned, true},
		{"TIMESTAMP_NTZ_OUTPUT_FORMAT", "YYYY-MM-DD HH24:MI:SS.FF3", true},
		{"TIMESTAMP_LTZ_OUTPUT_FORMAT", zoned, true},
		{"TIMESTAMP_TZ_OUTPUT_FORMAT", zoned, true},
		{"BINARY_INPUT_FORMAT", "HEX", true},
		{"BINARY_OUTPUT_FORMAT", "HEX", true},
		{"JSON_INDENT", "2", false},
		{"ERROR_ON_NONDETERMINISTIC_MERGE", "true", false},
		{"ERROR_ON_NONDETERMINISTIC_UPDATE", "false", false},
	}
}

// sql is what ALTER SESSION SET takes.
func (p parameter) sql() string {
	if !p.text {
		return p.name + " = " + p.value
	}
	return p.name + " = '" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(p.value) + "'"
}

// utc are the names of the time zone UTC.
var utc = []string{
	"UTC",
	"Etc/UTC",
	"UCT",
	"Etc/UCT",
	"Universal",
	"Etc/Universal",
	"Zulu",
	"Etc/Zulu",
	"GMT",
	"Etc/GMT",
}

// has reports whether a value that the account tells is the parameter's, in a spelling that means the same.
func (p parameter) has(value string) bool {
	switch p.name {
	case "QUERY_TAG":
		return value == p.value
	case "TIMEZONE":
		return slices.ContainsFunc(utc, func(name string) bool { return strings.EqualFold(name, value) })
	}
	return strings.EqualFold(value, p.value) // letters of formats and of booleans count alike
}

// takeSession makes a session ours after its log-in: what the log-in asked for is compared with what the account
// says, set once more where it differs, and refused where it still does.
func (d *database) takeSession(ctx context.Context, s session) error {
	if roles := d.settings.SecondaryRoles; roles != "" {
		if _, err := s.ExecContext(ctx, "USE SECONDARY ROLES "+roles, nil); err != nil {
			return &engine.Error{Code: engine.CodeTarget, Cause: err,
				Message: fmt.Sprintf("The session cannot have the secondary roles %s: %s", roles, sentence(err)),
				Hint: "A session policy may forbid them. Leave secondary_roles out of the connection for the user's " +
					"default."}
		}
	}
	stray, err := d.strayParameters(ctx, s)
	if err != nil || len(stray) == 0 {
		return err
	}
	set := make([]string, len(stray))
	for i, p := range stray {
		set[i] = p.sql()
	}
	_, refused := s.ExecContext(ctx, "ALTER SESSION SET "+strings.Join(set, " "), nil)
	if refused == nil {
		if stray, err = d.strayParameters(ctx, s); err != nil || len(stray) == 0 {
			return err
		}
	} else if !refusedByServer(refused) {
		return d.explain(refused)
	}
	names := make([]string, len(stray))
	for i, p := range stray {
		names[i] = p.sql()
	}
	return &engine.Error{Code: engine.CodeTarget, Cause: refused,
		Message: fmt.Sprintf("The session does not take what a run needs: %s.", strings.Join(names, ", ")),
		Hint: "An account's or a user's settings do not let the session set them. SHOW PARAMETERS IN SESSION tells at " +
			"which level each is set; ask an administrator."}
}

// strayParameters are those that the session has otherwise. What the account does not list, it does not have.
func (d *database) strayParameters(ctx context.Context, s session) ([]parameter, error) {
	rs, err := query(ctx, s, "SHOW PARAMETERS IN SESSION", nil)
	switch {
	case refusedByServer(err) && !breaksSession(err):
		return nil, nil // every account has this command: it is an emulator
	case err != nil:
		return nil, d.explain(err)
	}
	key, value := -1, -1
	for i, name := range rs.Columns {
		switch strings.ToLower(name) {
		case "key":
			key = i
		case "value":
			value = i
		}
	}
	if key < 0 || value < 0 {
		return nil, nil
	}
	has := make(map[string]string, len(rs.Rows))
	for _, row := range rs.Rows {
		name, _ := row[key].(string)
		has[strings.ToUpper(name)], _ = row[value].(string)
	}
	var stray []parameter
	for _, p := range d.sessionParameters() {
		if have, listed := has[p.name]; listed && !p.has(have) {
			stray = append(stray, p)
		}
	}
	return stray, nil
}
