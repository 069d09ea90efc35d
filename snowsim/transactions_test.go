package snowsim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTransactionsHaveNames: they have names and numbers, their user and ACCOUNTADMIN can abort them, and what their session
// executes next is none of theirs.
func TestTransactionsHaveNames(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.plain = nil })
	db := open(t, config(t, s.DSN()))
	one, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	do := func(text string) {
		t.Helper()
		if _, err := one.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	do("CREATE TABLE T (A NUMBER)")
	do("BEGIN TRANSACTION NAME mine")
	do("INSERT INTO T VALUES (1)")
	var id string
	if err := one.QueryRowContext(t.Context(), "SELECT CURRENT_TRANSACTION()").Scan(&id); err != nil || id == "" {
		t.Fatal(id, err)
	}
	if got := firstColumn(t, db, "SHOW TRANSACTIONS"); got != id || s.Transactions()[0].Name != "MINE" {
		t.Errorf("there are the transactions %s, not %s: %+v", got, id, s.Transactions())
	}
	if got := firstColumn(t, db, "SELECT SYSTEM$ABORT_TRANSACTION("+id+")"); !strings.Contains(got, "Aborted") {
		t.Error(got)
	}
	do("INSERT INTO T VALUES (2)")
	do("COMMIT")
	if got := firstColumn(t, db, "SELECT A FROM T"); got != "2" {
		t.Errorf("the table has %s", got)
	}
	if got := firstColumn(t, db, "SHOW TRANSACTIONS"); got != "" {
		t.Errorf("there are the transactions %s", got)
	}
	if got := firstColumn(t, db, "SELECT SYSTEM$ABORT_TRANSACTION("+id+")"); !strings.Contains(got, "not running") {
		t.Error(got)
	}
}

// TestIdleBlockersAreAborted: a transaction that nobody uses ends when another waits for it, and not before.
func TestIdleBlockersAreAborted(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.plain, o.IdleTransaction = nil, 400*time.Millisecond })
	db := open(t, config(t, s.DSN()))
	idle, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for _, text := range []string{"CREATE TABLE T (A NUMBER)", "INSERT INTO T VALUES (1)", "BEGIN", "UPDATE T SET A = 2"} {
		if _, err := idle.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	time.Sleep(600 * time.Millisecond)
	if n := len(s.Transactions()); n != 1 {
		t.Fatalf("%d transactions, though nobody waits", n)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE T SET A = A + 10"); err != nil {
		t.Fatal(err)
	}
	if got := firstColumn(t, db, "SELECT A FROM T"); got != "11" || len(s.Transactions()) != 0 {
		t.Errorf("the table has %s, and there are the transactions %s", got, fmt.Sprint(s.Transactions()))
	}
}
