package wiring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cost"
)

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
	prices, err := openPrices("", dir, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	want := func(step string, price float64) {
		t.Helper()
		if got := prices().CreditPrice; got != price {
			t.Errorf("%s: a credit costs %v, want %v", step, got, price)
		}
	}
	want("without a file", 3)
	write(list("2.5"))
	want("with a file", 2.5)
	write(list("nothing"))
	want("with a file that became wrong", 2.5)
	if _, err := openPrices("", dir, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "prices.yaml") {
		t.Errorf("starting with a wrong file: %v", err)
	}
	write(list("4"))
	want("with one that is right again", 4)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want("without it again", 3)
	if _, err := openPrices(file, dir, zerolog.Nop()); err == nil {
		t.Error("a named file that is missing is no error")
	}
}
