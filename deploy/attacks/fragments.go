package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// fragments are connection strings whose password has a character that ends it for some readers. No answer, page or log
// may have the half that stands behind it.
var fragments = []attack{
	{6, "half of a password is shown by an API", func(ctx context.Context, s *stage) (string, error) {
		return s.brokenAddresses(ctx, apiWays)
	}},
	{6, "half of a password is shown by the command line", func(ctx context.Context, s *stage) (string, error) {
		return s.brokenAddresses(ctx, map[string]brokenWay{
			"run": func(_ context.Context, _ *program.Client, _, dsn string) error {
				return s.commandRefuses("run", s.template(takeover(dsn)), "--data-dir", filepath.Join(s.dir, "own"))
			},
			"run on a server": func(_ context.Context, c *program.Client, driver, dsn string) error {
				text := strings.Replace(takeover(dsn), "driver: postgres", "driver: "+driver, 1)
				return s.commandRefuses("run", s.template(text), "--server", c.Base, "--token", c.Token)
			},
			"a control store": func(_ context.Context, _ *program.Client, _, dsn string) error {
				return s.commandRefuses("schema", "check", "--database-url", dsn)
			},
			"a backup": func(_ context.Context, _ *program.Client, _, dsn string) error {
				return s.commandRefuses(
					"backup",
					"--out",
					filepath.Join(s.dir, "backup"),
					"--data-dir",
					filepath.Join(s.dir, "own"),
					"--database-url",
					dsn,
				)
			},
		})
	}},
}

// brokenWay gives a reader a connection string, and returns its refusal.
type brokenWay func(ctx context.Context, c *program.Client, driver, dsn string) error

var apiWays = map[string]brokenWay{
	"saving": func(ctx context.Context, c *program.Client, driver, dsn string) error {
		return c.Do(ctx, http.MethodPost, "/api/connections", map[string]any{"name": "broken " + uuid.NewString()[:8],
			"driver": driver, "dsn": dsn}, nil)
	},
	"testing": func(ctx context.Context, c *program.Client, driver, dsn string) error {
		return c.Do(ctx, http.MethodPost, "/api/connections/test", map[string]any{"driver": driver, "dsn": dsn}, nil)
	},
	"a template": func(ctx context.Context, c *program.Client, driver, dsn string) error {
		return c.Do(ctx, http.MethodPost, "/api/templates", map[string]any{"source": templateOf(driver, dsn)}, nil)
	},
	"a run": func(ctx context.Context, c *program.Client, driver, dsn string) error {
		return c.Do(ctx, http.MethodPost, "/api/runs", map[string]any{"source": templateOf(driver, dsn), "start": true}, nil)
	},
	"a preflight": func(ctx context.Context, c *program.Client, driver, dsn string) error {
		return c.Do(ctx, http.MethodPost, "/api/preflight", map[string]any{"source": templateOf(driver, dsn)}, nil)
	},
	"a trial": func(ctx context.Context, c *program.Client, driver, dsn string) error {
		return c.Do(ctx, http.MethodPost, "/api/statements/try", map[string]any{"source": templateOf(driver, dsn)}, nil)
	},
	"a matrix": func(ctx context.Context, c *program.Client, driver, dsn string) error {
		source := fmt.Sprintf("name: %q\nmatrix:\n  targets:\n  - {label: a, connection: {driver: %s, dsn: %q}}\n"+
			"  - {label: b, connection: playground}\n%s", "broken "+uuid.NewString()[:8], driver, dsn, workload)
		return c.Do(ctx, http.MethodPost, "/api/matrices", map[string]any{"source": source, "start": true}, nil)
	},
}

func templateOf(driver, dsn string) string {
	return strings.Replace(takeover(dsn), "driver: postgres", "driver: "+driver, 1)
}

// half is what stands behind the character, and must be seen nowhere.
const half = "Zq9hidden"

// brokenAddresses tries all ways with all connection strings.
func (s *stage) brokenAddresses(ctx context.Context, ways map[string]brokenWay) (string, error) {
	addresses := map[string][]string{
		"postgres": {"postgres://ada:pw@" + half + "@h/d", "postgres://ada:pw/" + half + "@h/d",
			"postgres://ada:1/" + half + "@h/d", "postgres://ada:1?x=" + half + "@h/d", "postgres://ada:pw#" + half + "@h/d",
			"host=h user=u password='pw " + half,
			"host=h user=u password=pw'" + half, "dbname= password=" + half + " host=h", "ada:pw@" + half + "/d?x=y"},
		"snowflake": {"snowflake://ada:pw@" + half + "@acme/d", "snowflake://ada:pw/" + half + "@acme/d",
			"snowflake://ada:pw?" + half + "@acme", "snowflake://ada:x@acme?token=t&" + half + "=1"},
	}
	tried := 0
	for name, way := range ways {
		for driver, all := range addresses {
			if driver != "postgres" && !strings.HasPrefix(name, "run on") && len(ways) != len(apiWays) {
				continue // these read addresses of Postgres alone
			}
			for i, dsn := range all {
				err := way(ctx, s.users[oscar].tokens[i%2], driver, dsn)
				if err := refused(err, "%", "quote", "pairs"); err != nil {
					return "", fmt.Errorf("%s, %s: %w", name, dsn, err)
				}
				if strings.Contains(err.Error(), half) {
					return "", fmt.Errorf("%s, %s: the answer shows it: %w", name, dsn, err)
				}
				tried++
			}
		}
	}
	for _, server := range s.servers {
		if strings.Contains(server.Output(), half) {
			return "", errors.New("it is in the log of the " + server.Name)
		}
	}
	return fmt.Sprintf("refused without it in %d ways", tried), nil
}

// template writes a template to a file.
func (s *stage) template(text string) string {
	path := filepath.Join(s.dir, uuid.NewString()+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		panic(err) // the folder is the stage's own
	}
	return path
}

// commandRefuses is the refusal of a command.
func (s *stage) commandRefuses(args ...string) error {
	out, err := s.run(args[0], args...)
	if err == nil {
		return nil
	}
	return &program.StatusError{Status: http.StatusUnprocessableEntity, Text: out}
}
