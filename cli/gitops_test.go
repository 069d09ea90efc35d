package cli

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// TestAFolderIsApplied on a real server: a dry run says what would change and changes nothing, the second time nothing
// changes, and what get prints is a file that changes nothing either.
func TestAFolderIsApplied(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	control := postgrestest.NewControl(t)
	s := serve(t, control, filepath.Join(t.TempDir(), "data"))
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	passed := func(args ...string) (out, errs string) {
		t.Helper()
		code, out, errs := s.loadstone(args...)
		if code != terminal.ExitPassed {
			t.Fatalf("%v: exit %d, %q, %q", args, code, out, errs)
		}
		return out, errs
	}
	wants := func(what, got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is missing in %q", what, part, got)
			}
		}
		if strings.Contains(got, "p@ss") || strings.Contains(got, "p%40ss") {
			t.Errorf("%s shows the password: %q", what, got)
		}
	}
	t.Setenv("SHOP_PASSWORD", "p@ss/word")
	write("b/shop.yaml", "kind: connection\nname: shop\ndriver: postgres\n"+
		"dsn: postgres://bench:${SHOP_PASSWORD}@db.example.com:5432/shop\nproduction: true\n")
	const orders = "# Orders of a night.\nname: orders\ntarget: {connection: shop, table_name: orders}\n" +
		"workload: {plugin: mix, concurrent_connections: 4, duration_seconds: 60}\n"
	template := write("a/orders.yaml", orders)
	nightly := write("c.yml", "kind: schedule\nname: nightly\ntemplate: orders\ncron: 30 2 * * *\n"+
		"time_zone: Europe/Berlin\nconfirm_production: [shop]\n")
	write("streams/files.sql", "CREATE LOGICAL SOURCE IF NOT EXISTS lines(text TEXT);\n")
	write("README.md", "no file to apply")
	write(".hidden/x.yaml", "nonsense: [")

	out, errs := passed("apply", "-f", folder, "--dry-run")
	wants(
		"a dry run",
		out+errs,
		"connection shop: would be created",
		"template orders: would be created",
		"schedule nightly: would be created",
		"files.sql: stream SQL",
		"3 created, 0 changed, 0 unchanged. Nothing was changed",
	)
	if out, _ = passed("connections", "list", "--json"); strings.Contains(out, "shop") {
		t.Error("a dry run has made a connection")
	}
	out, errs = passed("apply", "-f", folder)
	wants("the first time", out+errs, "connection shop: created", "3 created, 0 changed, 0 unchanged.")
	out, errs = passed("apply", "-f", folder)
	wants("the second time", out+errs, "connection shop: unchanged", "template orders: unchanged",
		"schedule nightly: unchanged", "0 created, 0 changed, 3 unchanged.")

	// The server notices a changed password, though it shows none.
	t.Setenv("SHOP_PASSWORD", "another p@ss")
	out, _ = passed("apply", "-f", folder, "--dry-run")
	wants("a dry run of a password", out, "connection shop: unchanged; its password is not compared by --dry-run")
	out, _ = passed("apply", "-f", folder)
	wants("another password", out, "connection shop: changed: password")
	out, _ = passed("apply", "-f", folder)
	wants("another password, again", out, "connection shop: unchanged")
	inline := filepath.Join(t.TempDir(), "inline.yaml")
	for i, password := range []string{"one p@ss", "two p@ss", "two p@ss"} {
		text := strings.NewReplacer("orders", "inline", "connection: shop",
			"connection: {driver: postgres, dsn: 'postgres://u:"+strings.ReplaceAll(url.QueryEscape(password), "+", "%20")+
				"@db.example.com/d'}").Replace(orders)
		if err := os.WriteFile(inline, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ = passed("templates", "apply", "-f", inline)
		wants("a template with a password", out, []string{"created", "inline: changed: password", "inline: unchanged"}[i])
	}

	// What the files do not say stays: the mark, the description and the pause of others.
	shop := "kind: connection\nname: shop\ndriver: postgres\n" +
		"dsn: postgres://bench:${SHOP_PASSWORD}@db.example.com:5432/shop\n"
	write("b/shop.yaml", shop)
	passed("schedules", "pause", "nightly")
	out, _ = passed("apply", "-f", folder)
	wants(
		"what is not said",
		out,
		"connection shop: unchanged",
		"nightly: unchanged; it is paused, and paused: false resumes",
	)
	write("b/shop.yaml", shop+"description: words\n")
	passed("apply", "-f", folder)
	if out, _ = passed("connections", "get", "shop"); !strings.Contains(out, "production: true") {
		t.Errorf("the mark is gone: %s", out)
	}
	write("b/shop.yaml", shop+"production: false\n")
	out, _ = passed("apply", "-f", folder)
	wants("a mark taken away", out, "connection shop: changed: production true → false")
	if out, _ = passed("connections", "get", "shop"); !strings.Contains(out, "description: words") {
		t.Errorf("the description is gone: %s", out)
	}
	write("b/shop.yaml", shop+"production: true\ndescription: ''\n")
	const schedule = "kind: schedule\nname: nightly\ntemplate: orders\ncron: 30 2 * * *\ntime_zone: Europe/Berlin\n"
	write("c.yml", schedule+"paused: false\nconfirm_production: [shop]\n")
	out, _ = passed("apply", "-f", folder)
	wants("a resumed schedule", out, "schedule nightly: changed: paused true → false")

	// A confirmation that is added, and a suspended schedule, are differences.
	write("a/orders.yaml", strings.Replace(orders, "connection: shop", "connection: other", 1))
	write("b/other.yaml", strings.Replace(shop, "name: shop", "name: other", 1)+"production: true\n")
	write("c.yml", schedule+"confirm_production: [shop, nothing]\n")
	out, _ = passed("apply", "-f", folder)
	wants("a template of another connection", out, "connection other: created", "schedule nightly: unchanged")
	write("c.yml", schedule+"confirm_production: [shop, other]\n")
	out, _ = passed("apply", "-f", folder)
	wants("a confirmation", out, "schedule nightly: changed: confirm_production other")
	conn, err := pgx.Connect(t.Context(), control)
	if err == nil {
		_, err = conn.Exec(t.Context(), "UPDATE schedules SET suspended_reason = 'ada is locked out', next_due = NULL")
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	out, _ = passed("apply", "-f", folder)
	wants("a suspended schedule", out, "schedule nightly: changed: suspended: ada is locked out → resumed")
	out, errs = passed("apply", "-f", folder)
	wants("all of it again", out+errs, "0 created, 0 changed, 4 unchanged.")
	write("a/orders.yaml", orders)
	passed("apply", "-f", folder)
	if err := os.Remove(filepath.Join(folder, "b/other.yaml")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_PASSWORD", "p@ss/word")
	write("b/shop.yaml", shop+"production: true\n")
	write("c.yml", schedule+"confirm_production: [shop]\n")
	passed("apply", "-f", folder)
	list, _ := passed("schedules", "list")
	wants("the schedules", list, "nightly", "orders", "30 2 * * *", "Europe/Berlin", "UTC")

	// What get prints changes nothing.
	for what, name := range map[string]string{"connections": "shop", "templates": "orders", "schedules": "nightly"} {
		text, _ := passed(what, "get", name)
		again := filepath.Join(t.TempDir(), "again.yaml")
		if err := os.WriteFile(again, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ = passed(what, "apply", "-f", again)
		wants(what+" get "+name, out, name+": unchanged")
	}

	// Each change is said with its fields.
	write("b/shop.yaml", "kind: connection\nname: shop\ndriver: postgres\n"+
		"dsn: postgres://bench:${SHOP_PASSWORD}@db2.example.com:5432/shop\nproduction: true\ndescription: the shop\n")
	write("a/orders.yaml", strings.Replace(orders, "60", "90", 1))
	write("c.yml", "kind: schedule\nname: nightly\ntemplate: orders\ncron: '@daily'\npaused: true\n")
	parts := []string{
		"db.example.com",
		"→ postgres://bench:***@db2.example.com",
		"description none → the shop",
		"workload.duration_seconds 60 → 90",
		"cron 30 2 * * * → @daily",
		"time_zone Europe/Berlin → UTC",
		"paused false → true",
		"0 created, 3 changed, 0 unchanged",
	}
	out, errs = passed("apply", "-f", folder, "--dry-run")
	wants("a dry run of changes", out+errs, append(parts, "would be changed")...)
	out, errs = passed("apply", "-f", folder)
	wants("changes", out+errs, parts...)
	out, errs = passed("apply", "-f", folder)
	wants("changes, again", out+errs, "0 created, 0 changed, 3 unchanged.")
	write("a/orders.yaml", "# Another comment.\n"+strings.Replace(orders, "60", "90", 1))
	out, _ = passed("templates", "apply", "-f", template)
	wants("a comment", out, "template orders: changed: comments or layout")
	if out, _ = passed("templates", "get", "orders"); !strings.HasPrefix(out, "# Another comment.\n") {
		t.Errorf("the template is now %q", out)
	}
	out, _ = passed("schedules", "resume", "nightly")
	wants("resume", out, "schedule nightly: next start ")
	out, _ = passed("schedules", "pause", "nightly")
	wants("pause", out, "schedule nightly: paused")
	passed("schedules", "starts", "nightly")
	passed("runs", "list", "--template", "orders", "--status", "failed")

	// A file that is wrong is named, and nothing is applied.
	write("a/orders.yaml", strings.Replace(orders, "60", "-1", 1))
	if code, _, errs := s.loadstone("apply", "-f", folder); code != terminal.ExitUsage ||
		!strings.Contains(errs, "orders.yaml: The template is not valid.") || !strings.Contains(errs, "duration_seconds") {
		t.Errorf("exit %d, %q", code, errs)
	}
	write("a/orders.yaml", orders)
	other := write("d.yaml", "")
	for name, c := range map[string]struct {
		text string
		args []string
		says string
	}{
		"twice":            {"kind: schedule\nname: nightly\ntemplate: orders\ncron: '@daily'\n", []string{"apply", "-f", folder}, `the schedule "nightly" is in`},
		"another kind":     {"", []string{"templates", "apply", "-f", nightly}, "it has a schedule, and this command takes a template"},
		"unknown kind":     {"kind: table\n", []string{"apply", "-f", other}, "the kind table is unknown"},
		"unknown member":   {"kind: schedule\nname: x\ncorn: x\n", []string{"apply", "-f", other}, "corn"},
		"missing member":   {"kind: schedule\nname: x\n", []string{"apply", "-f", other}, "needs name, template and cron"},
		"missing variable": {"kind: connection\nname: x\ndriver: postgres\ndsn: ${NO_SUCH_DSN}\n", []string{"apply", "-f", other}, "NO_SUCH_DSN"},
		"no file":          {"", []string{"apply", "-f", filepath.Join(folder, "none")}, "none"},
		"wrong cron": {"kind: schedule\nname: x\ntemplate: orders\ncron: 61 * * * *\n", []string{"apply", "-f", other},
			"has the minute"},
		"no such schedule": {"", []string{"schedules", "get", "nothing"}, `There is no schedule "nothing"`},
	} {
		if c.text != "" {
			write("d.yaml", c.text)
		}
		if code, out, errs := s.loadstone(c.args...); code != terminal.ExitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errs)
		}
	}
	if code, _, errs := s.loadstone("templates", "delete", "orders"); code != terminal.ExitUsage ||
		!strings.Contains(errs, "the schedule nightly starts runs of it") {
		t.Errorf("exit %d, %q", code, errs)
	}
	for _, args := range [][]string{{"schedules", "delete", "nightly"}, {"templates", "delete", "orders"},
		{"connections", "delete", "shop"}} {
		out, _ = passed(args...)
		wants(strings.Join(args, " "), out, args[2]+": deleted")
	}
}
