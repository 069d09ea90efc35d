package snowflake

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Put stores a file that Loadstone has made under a path of the user's own stage (@~), in place of what is there.
// gosnowflake uploads it to where the account says, encrypted when the account asks for it.
func (d *database) Put(ctx context.Context, to string, content []byte) error {
	dir, name := path.Split(to)
	if strings.ContainsAny(to, "'\\\n ") || name == "" || strings.Contains(os.TempDir(), "'") {
		return fmt.Errorf("putting %q: not a path of a stage", to)
	}
	for try := 1; ; try++ {
		err := d.upload(ctx, dir, name, content)
		var refused *stageError
		if try == maxUploads || !errors.As(err, &refused) || refused.code != codeExpired {
			return err
		}
	}
}

// upload stores a file once. gosnowflake does not look at a context between its tries, and must keep its session until
// they have ended: it ends by itself, from what the upload's guard answers, and nobody waits for it.
func (d *database) upload(ctx context.Context, dir, name string, content []byte) error {
	d.mu.Lock()
	shut := d.shut
	if !shut {
		d.uploads.Add(1)
	}
	d.mu.Unlock()
	if shut {
		return errClosed
	}
	from, err := stageable(name, content)
	if err != nil {
		d.uploads.Done()
		return err
	}
	u := newUpload(ctx, d.transport, from)
	put := make(chan error, 1)
	go func() {
		defer d.uploads.Done()
		err := d.put(context.WithValue(context.WithoutCancel(ctx), uploadKey{}, u), from, dir)
		_ = os.RemoveAll(filepath.Dir(from))
		u.close()
		put <- err
	}()
	select {
	case err = <-put:
	case <-u.ctx.Done():
		if ended := ctx.Err(); ended != nil {
			u.fail(ended)
		}
		if u.failure() == nil {
			err = <-put // it has ended just now
		}
	}
	if failed := u.failure(); failed != nil {
		return failed
	}
	return err
}

// stageable writes a file, in a folder of its own, that gosnowflake can take.
func stageable(name string, content []byte) (string, error) {
	tmp, err := os.MkdirTemp("", "loadstone-put-")
	if err != nil {
		return "", fmt.Errorf("putting %s: %w", name, err)
	}
	at := filepath.Join(tmp, name)
	if err := os.WriteFile(at, content, 0o600); err != nil {
		return "", errors.Join(fmt.Errorf("putting %s: %w", name, err), os.RemoveAll(tmp))
	}
	return at, nil
}

// put has gosnowflake upload a file to a folder of the user's stage.
func (d *database) put(ctx context.Context, from, dir string) error {
	sql := "PUT 'file://" + from + "' '@~/" + strings.Trim(dir, "/") +
		"' AUTO_COMPRESS = FALSE SOURCE_COMPRESSION = NONE OVERWRITE = TRUE"
	var rs *target.ResultSet
	err := d.withSession(ctx, func(s session) (err error) {
		rs, err = query(ctx, s, sql, nil)
		return err
	})
	if err != nil {
		return d.refused(sql, err)
	}
	// A file that the stage does not show afterwards is no error of gosnowflake's.
	at := slices.Index(rs.Columns, "status")
	if at < 0 || len(rs.Rows) != 1 || rs.Rows[0][at] != "UPLOADED" {
		return failure(engine.ErrClassConnection, codeConnection, "It is tried again.",
			"The account's stage does not show the file that it has taken.")
	}
	return nil
}

// errAborted is a transaction that somebody has ended while it was under way.
var errAborted = errors.New("the transaction was ended by somebody else; nothing of it was kept")

// InTransaction runs f in a transaction of one session: all that it executes holds, or nothing. Whoever has taken its
// work over may abort it: what it executes after that is in a transaction of its own kind, which does not commit.
func (d *database) InTransaction(ctx context.Context, name string, f func(target.Tx) error) error {
	s, err := d.borrow(ctx, false)
	if err != nil {
		return err
	}
	t := together{d, s}
	if err := t.Exec(ctx, fmt.Sprintf("ALTER SESSION SET AUTOCOMMIT = FALSE LOCK_TIMEOUT = %d",
		int(target.LockPatience.Seconds()))); err != nil {
		d.give(s, errNotUndone) // the account may have executed it all the same
		return err
	}
	err = t.run(ctx, name, f)
	if breaksSession(err) {
		d.give(s, err)
		return err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if failed := t.Exec(after, "ALTER SESSION SET AUTOCOMMIT = TRUE LOCK_TIMEOUT = "+lockTimeout); failed != nil {
		d.give(s, errNotUndone) // the session is of no use for others
		return err
	}
	d.give(s, err)
	return err
}

func (t together) run(ctx context.Context, name string, f func(target.Tx) error) error {
	err := t.Exec(ctx, "BEGIN TRANSACTION NAME "+name)
	if err != nil {
		return err
	}
	begun, err := t.current(ctx)
	if err == nil {
		err = f(t)
	}
	if err == nil {
		var still string
		if still, err = t.current(ctx); err == nil && still != begun {
			err = errAborted
		}
	}
	if err == nil {
		err = t.Exec(ctx, "COMMIT")
	}
	if err != nil && !breaksSession(err) {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if failed := t.Exec(undo, "ROLLBACK"); failed != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", errNotUndone, failed))
		}
	}
	return err
}

// current is the account's number of the transaction under way.
func (t together) current(ctx context.Context) (string, error) {
	rs, err := t.Query(ctx, "SELECT CURRENT_TRANSACTION()")
	if err != nil || len(rs.Rows) != 1 {
		return "", err
	}
	return fmt.Sprint(rs.Rows[0][0]), nil
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
