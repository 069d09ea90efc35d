package cost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestPricesFollowTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "prices.yaml")
	written := time.Now()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		written = written.Add(time.Second) // also on file systems with coarse times
		if err := os.Chtimes(file, written, written); err != nil {
			t.Fatal(err)
		}
	}
	list := func(price string) string {
		return strings.Replace(string(cost.Embedded()), "credit_price: 3.00", "credit_price: "+price, 1)
	}
	prices, err := cost.Open("", dir, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	want := func(step string, price float64) {
		t.Helper()
		if got := prices.Prices().CreditPrice; got != price {
			t.Errorf("%s: a credit costs %v, want %v", step, got, price)
		}
	}
	want("without a file", 3)
	write(list("2.5"))
	want("with a file", 2.5)
	write(list("nothing"))
	want("with a file that became wrong", 2.5)
	if _, err := cost.Open("", dir, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "prices.yaml") {
		t.Errorf("starting with a wrong file: %v", err)
	}
	write(list("4"))
	want("with one that is right again", 4)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want("without it again", 3)
	if _, err := cost.Open(file, dir, zerolog.Nop()); err == nil {
		t.Error("a named file that is missing is no error")
	}
}

// TestASavedListComesBeforeTheFile of the data directory, and after the one that the command line names; another server
// sees it. Of two that edit it the second is told.
func TestASavedListComesBeforeTheFile(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	kept, _ := postgrestest.Open(t)
	list := func(price string) string {
		return strings.Replace(string(cost.Embedded()), "credit_price: 3.00", "credit_price: "+price, 1)
	}
	if err := os.WriteFile(filepath.Join(dir, "prices.yaml"), []byte(list("4")), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(named string) *cost.Source {
		t.Helper()
		s, err := cost.Open(named, dir, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		s.UseStore(kept)
		return s
	}
	want := func(s *cost.Source, from cost.Origin, price float64) {
		t.Helper()
		if l := s.Current(ctx); l.From != from || l.Prices.CreditPrice != price || s.Prices().CreditPrice != price {
			t.Errorf("from %s a credit costs %v, want %s %v", l.From, l.Prices.CreditPrice, from, price)
		}
	}
	one := open("")
	want(one, cost.FromFile, 4)
	if _, err := one.Save(ctx, list("5"), 0, "ada"); err != nil {
		t.Fatal(err)
	}
	want(one, cost.FromSaved, 5)
	other := open("")
	want(other, cost.FromSaved, 5)
	if l := other.Current(ctx); l.UpdatedBy != "ada" || l.Version != 1 || l.UpdatedAt.IsZero() {
		t.Errorf("saved by %q, version %d", l.UpdatedBy, l.Version)
	}
	named := open(filepath.Join(dir, "prices.yaml"))
	want(named, cost.FromFlag, 4)
	if _, err := named.Save(ctx, list("6"), 1, "ada"); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("saved beside --prices: %v", err)
	}
	if _, err := other.Save(ctx, list("6"), 0, "bob"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an edit of an old version: %v", err)
	}
	var wrong *engine.Error
	if _, err := other.Save(ctx, list("much"), 1, "bob"); !errors.As(err, &wrong) || len(wrong.Fields) != 1 ||
		wrong.Fields[0].Field != "credit_price" || wrong.Fields[0].Line == 0 {
		t.Errorf("a wrong list: %v", err)
	}
	want(other, cost.FromSaved, 5)
	if _, err := other.Save(ctx, " \n", 1, "bob"); err != nil {
		t.Fatal(err)
	}
	want(other, cost.FromFile, 4)
	if _, err := kept.SaveSetting(ctx, store.Setting{Name: cost.Setting, Version: 2,
		Value: []byte(`{"text": "credit_price: 1"}`)}); err != nil {
		t.Fatal(err)
	}
	if l := open("").Current(ctx); l.From != cost.FromFile || l.Problem == "" {
		t.Errorf("what another version has saved is used, or nothing is said: %+v", l)
	}
}
