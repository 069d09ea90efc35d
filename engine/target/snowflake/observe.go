package snowflake

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net/url"
	"strings"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine/target"
)

// Observe returns a driver of this package that tells each statement which it gives to an account, and what came of it.
// tell is called from many goroutines.
func Observe(d target.Driver, tell func(sql string, err error)) target.Driver {
	if s, ok := d.(snowflakeDriver); ok {
		s.observe = tell
		return s
	}
	return d
}

// observedSession tells what it executes.
type observedSession struct {
	session
	tell func(sql string, err error)
}

func (o *observedSession) ExecContext(
	ctx context.Context,
	sql string,
	args []driver.NamedValue,
) (driver.Result, error) {
	r, err := o.session.ExecContext(ctx, sql, args)
	o.tell(sql, err)
	return r, err
}

func (o *observedSession) QueryContext(ctx context.Context, sql string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := o.session.QueryContext(ctx, sql, args)
	o.tell(sql, err)
	return r, err
}

func (o *observedSession) QueryArrowStream(ctx context.Context, sql string, args ...driver.NamedValue) (
	sf.ArrowStreamLoader, error) {
	l, err := o.session.QueryArrowStream(ctx, sql, args...)
	o.tell(sql, err)
	return l, err
}

// WithSchema is a connection string that leads to another schema, a plain name, of the database that the sessions of db
// have.
func WithSchema(ctx context.Context, db target.Database, dsn, schema string) (string, error) {
	rs, err := db.Query(ctx, "SELECT CURRENT_DATABASE()")
	if err != nil {
		return "", fmt.Errorf("asking for the database of the connection: %w", err)
	}
	head, query, _ := strings.Cut(dsn, "?")
	begin := strings.LastIndexByte(head, '@') + 1
	if begin == 0 {
		_, rest, _ := strings.Cut(head, "://")
		begin = len(head) - len(rest)
	}
	account, _, _ := strings.Cut(head[begin:], "/")
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if name := names[key]; pair != "" && name != "database" && name != "schema" {
			kept = append(kept, pair)
		}
	}
	dsn = head[:begin] + account + "/" + url.PathEscape(
		quoteName(fmt.Sprint(rs.Rows[0][0])),
	) + "/" + url.PathEscape(
		schema,
	)
	if len(kept) > 0 {
		dsn += "?" + strings.Join(kept, "&")
	}
	return dsn, nil
}
