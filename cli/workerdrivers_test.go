package cli

import (
	"testing"

	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
)

// TestANodeTakesNothingFromItsMachine: what a server gives it to connect to names no files of the node, and uses no
// socket that its own list lacks.
func TestANodeTakesNothingFromItsMachine(t *testing.T) {
	p, err := wiring.TargetFlags{}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	d := workerDrivers(p)["postgres"]
	for _, dsn := range []string{"postgres://u@h/d?sslrootcert=/etc/ssl/x.crt", "postgres://u@h/d?service=x",
		"postgres://u@h/d?passfile=/root/.pgpass", "host=/var/run/postgresql user=u"} {
		if _, err := d.Open(target.Config{DSN: secret.New(dsn)}); err == nil {
			t.Errorf("%s is taken", dsn)
		}
	}
	if _, err := d.Open(target.Config{DSN: secret.New("postgres://u@h/d")}); err != nil {
		t.Error(err)
	}
}
