package prepare_test

import (
	"context"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

// limited notes how long a check may take.
type limited struct {
	target.Driver
	left *time.Duration
}

type limitedDatabase struct {
	target.Database
	target.CheckLimiter
	left *time.Duration
}

func (d limited) Open(cfg target.Config) (target.Database, error) {
	db, err := d.Driver.Open(cfg)
	if err != nil {
		return nil, err
	}
	return limitedDatabase{db, db.(target.CheckLimiter), d.left}, nil
}

func (d limitedDatabase) Check(ctx context.Context) (target.ServerInfo, error) {
	until, _ := ctx.Deadline()
	*d.left = time.Until(until)
	return target.ServerInfo{}, nil
}

// TestAConnectionIsTestedAtEachHost: as long as a run would try them, up to two minutes. A name may have several
// addresses, and is looked up.
func TestAConnectionIsTestedAtEachHost(t *testing.T) {
	for dsn, want := range map[string]time.Duration{
		"postgres://u:p@a/d?connect_timeout=1": 19 * time.Second, "postgres://u:p@10.0.0.1/d": 20 * time.Second,
		"postgres://u:p@10.0.0.1,[fd00::1]/d": 30 * time.Second, "postgres://u:p@a,b/d": 2 * time.Minute,
		"postgres://u:p@10.0.0.1/d?connect_timeout=3600": 2 * time.Minute,
	} {
		var left time.Duration
		drivers := map[string]target.Driver{"postgres": limited{postgres.NewStrictDriver(nil, nil), &left}}
		if _, err := prepare.CheckConnection(t.Context(), drivers, "postgres", secret.New(dsn)); err != nil {
			t.Fatal(err)
		}
		if left > want || left < want-4*time.Second {
			t.Errorf("%s: %v, expected %v", dsn, left, want)
		}
	}
}
