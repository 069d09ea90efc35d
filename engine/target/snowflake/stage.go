package snowflake

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine/target"
)

// Put stores a file that Loadstone has made under a path of the user's own stage (@~), in place of what is there.
// gosnowflake uploads it to where the account says, encrypted when the account asks for it.
func (d *database) Put(ctx context.Context, to string, content []byte) error {
	dir, name := path.Split(to)
	if strings.ContainsAny(to, "'\\\n ") || name == "" || strings.Contains(os.TempDir(), "'") {
		return fmt.Errorf("putting %q: not a path of a stage", to)
	}
	// From a file: of a stream gosnowflake stores nothing where a stage is a folder.
	tmp, err := os.MkdirTemp("", "loadstone-put-")
	if err != nil {
		return fmt.Errorf("putting %s: %w", to, err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	from := filepath.Join(tmp, name)
	if err := os.WriteFile(from, content, 0o600); err != nil {
		return fmt.Errorf("putting %s: %w", to, err)
	}
	sql := "PUT 'file://" + from + "' '@~/" + strings.Trim(dir, "/") +
		"' AUTO_COMPRESS = FALSE SOURCE_COMPRESSION = NONE OVERWRITE = TRUE"
	err = d.withSession(ctx, func(s session) error {
		_, err := s.ExecContext(ctx, sql, nil)
		return err
	})
	if err != nil {
		return d.refused(sql, err)
	}
	return nil
}

// InTransaction runs f in a transaction of one session: all that it executes holds, or nothing.
func (d *database) InTransaction(ctx context.Context, f func(target.Tx) error) error {
	s, err := d.borrow(ctx, false)
	if err != nil {
		return err
	}
	t := together{d, s}
	if err = t.Exec(ctx, "BEGIN"); err == nil {
		if err = f(t); err == nil {
			err = t.Exec(ctx, "COMMIT")
		}
		if err != nil && !breaksSession(err) {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			if failed := t.Exec(undo, "ROLLBACK"); failed != nil {
				err = errors.Join(err, fmt.Errorf("%w: %w", errNotUndone, failed))
			}
			cancel()
		}
	}
	d.give(s, err)
	return err
}

type together struct {
	d *database
	s session
}

func (t together) Exec(ctx context.Context, sql string, args ...any) error {
	values, err := arguments(args)
	if err != nil {
		return err
	}
	if _, err := t.s.ExecContext(ctx, sql, values); err != nil {
		return t.d.refused(sql, err)
	}
	return nil
}

func (t together) Query(ctx context.Context, sql string, args ...any) (*target.ResultSet, error) {
	values, err := arguments(args)
	if err != nil {
		return nil, err
	}
	rs, err := query(ctx, t.s, sql, values)
	if err != nil {
		return nil, t.d.refused(sql, err)
	}
	return rs, nil
}

func arguments(args []any) (values []driver.NamedValue, err error) {
	var mode bindMode
	for i, a := range args {
		if values, err = mode.appendArgument(values, a); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return values, nil
}
