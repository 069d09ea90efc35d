package dsn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
)

// TestAmbiguousConnectionStrings are refused, with how they are written, and nothing of them is shown.
func TestAmbiguousConnectionStrings(t *testing.T) {
	for _, c := range []struct{ dsn, hint string }{
		{"postgres://ada:Zq9@9qZ@host/db", "%40"}, {"postgres://ada:Zq9/9qZ@host/db", "%2F"},
		{"postgres://ada:Zq9?9qZ@host/db", "%3F"}, {"postgres://ada:Zq9#9qZ@host/db", "%23"},
		{"postgres://ada:1?x=9qZ@host/db", "%3F"}, {"postgres://ada:12/9qZ@host/db", "%2F"},
		{"postgres://ada:Zq9@host/db@9qZ", "%40"}, {"postgres://ada:Zq9@9qZ?x=y@host/db", "%40"},
		{"postgres://ada@corp:Zq9@host/db", "%40"}, {"postgres://ada:1?user=9qZ@host/db", "%3F"},
		{"postgres://ada:1?user=9qZ@host:5432", "%3F"}, {"postgres://ada:Zq9@h?user=9qZ@host/db", "%40"},
		{"postgres://ada:Zq9/5432?user=9qZ@host", "%3F"}, {"postgres://ada:5432/Zq9@9qZ?user=x", "%2F"},
		{"postgres://ada:Zq9@b@9qZ/d?user=a", "%40"}, {"postgres://ada:1?user=9qZ@x@host", "%3F"},
		{"postgres://ada@7?x=y:Zq9@9qZ:70000", "%40"}, {"postgres://ada?user=y:Zq9@9qZ", "%40"},
		{"postgres://ada?x=y:Zq9&user=b@9qZ", "%40"},
		{"postgres://ada:1/d?x&9qZ@host", "%3F"}, {"password = host=Zq9@9qZ user=u", `\'`},
		{"user = password=Zq9 host=9qZ", `\'`}, {"postgres://host:5432/db?user=ada&password=Zq9@9qZ", "%40"},
		{"postgres://ada:x@host/db?password=Zq9@9qZ", "%40"}, {"postgresql://ada:Zq9@host/db#9qZ", "%23"},
		{"password='Zq9 9qZ host=h user=u", `\'`}, {"password=Zq9'9qZ host=h user=u", `\'`},
		{"password='Zq9'9qZ=x host=h user=u", `\'`}, {"host=Zq9@9qZ user=u", `\'`},
		{"host=h user=u dbname='postgres://u:Zq9@9qZ/d'", "pairs"}, {"user:Zq9@9qZ/db?x=y", "%XX"},
		{"Postgres://ada:Zq9@host/db?x=y", "%XX"},
	} {
		for name, d := range keepers() {
			_, err := d.Config(c.dsn)
			shown, _ := d.Redact(c.dsn)
			if text := fmt.Sprintf("%+v %v", err, err); !engine.HasCode(err, engine.CodeTarget) ||
				!strings.Contains(engine.AsError(err).Hint, c.hint) || strings.Contains(text, "Zq9") ||
				strings.Contains(text, "9qZ") || shown != "***" {
				t.Errorf("%s: %q is shown as %q: %v", name, c.dsn, shown, err)
			}
			if err := d.Validate(c.dsn); err == nil {
				t.Errorf("%s: %q is taken", name, c.dsn)
			}
		}
		if err := Check("--database-url", c.dsn); !engine.HasCode(err, engine.CodeInvalid) ||
			!strings.Contains(err.Error(), "--database-url") || strings.Contains(err.Error(), "9qZ") {
			t.Errorf("%q: %v", c.dsn, err)
		}
	}
	for _, dsn := range []string{"postgres://db:5432/app?user=svc@corp.com", "postgres://[::1]/d?user=a@b",
		"postgres://u:p@h/d?application_name=me@host", "postgres://u:p@h:5432?application_name=me@host&sslmode=require",
		"postgres://[::1]:5432/d?sslmode=disable&user=a@b", "postgresql://h1:1,h2:2/d?user=svc@corp.com&application_name=x/y",
		"postgres://svc%40corp.com:p%40@h/d?application_name=a@b", "password = YWJj== host=h user=u",
		"host = h user = u password = a=b", "password=YWJj==  host = h", "postgres://ada:p%40ss@host/db", "postgres://ada%40corp:p%2Fw@host/db?sslmode=require",
		"postgres://host/db?application_name=a@b", "password=p@ss host=h user=ada@corp", `password='it\'s' host=h`,
		"postgres://ada:a:b@host/db", "postgres:///db?host=/run/x&user=ada@corp", "host=/tmp user=u", ""} {
		if err := Check("dsn", dsn); err != nil {
			t.Errorf("%q: %v", dsn, err)
		}
		if taken, err := disagreement(dsn); err != nil || !taken && !strings.Contains(dsn, "host=/") && dsn != "" {
			t.Errorf("%q is taken: %t, %v", dsn, taken, err)
		}
	}
}

// inputsEnv is how many connection strings the test of agreement makes.
const inputsEnv = "LOADSTONE_DSN_INPUTS"

// TestReadersAgree makes connection strings of which most are nearly right: what a server takes leads, with pgx, to the
// same hosts, ports, user and database with the same password; what is shown has no password, and an error has nothing
// of what stands before the last @. LOADSTONE_DSN_INPUTS=10000000 is the long run.
func TestReadersAgree(t *testing.T) {
	cleanEnvironment(t)
	inputs := 20_000
	if text := os.Getenv(inputsEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", inputsEnv, err)
		}
		inputs = n
	}
	var next, taken atomic.Int64
	var wg sync.WaitGroup
	seed := rand.Uint64()
	for i := range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			m := maker{rand.New(rand.NewPCG(seed, uint64(i)))}
			for next.Add(1) <= int64(inputs) && !t.Failed() {
				dsn := m.dsn()
				took, err := disagreement(dsn)
				if err != nil {
					t.Errorf("seed %d: %q: %v", seed, dsn, err)
				}
				if took {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d were taken", taken.Load(), inputs)
	if taken.Load() < int64(inputs)/6 { // a quarter of them is
		t.Errorf("%d of %d were taken: the inputs try nothing, or too much is refused", taken.Load(), inputs)
	}
}

// TestPlainConnectionStringsAreTaken: a refusal agrees with everything, so that the test of agreement does not see what
// is refused without need.
func TestPlainConnectionStringsAreTaken(t *testing.T) {
	cleanEnvironment(t)
	seed := rand.Uint64()
	m := maker{rand.New(rand.NewPCG(seed, 1))}
	for range 5_000 {
		dsn := m.plain()
		if taken, err := disagreement(dsn); !taken || err != nil {
			_, why := Reader{Strict: true}.Config(dsn)
			t.Fatalf("seed %d: %q is taken: %t, %v, %v", seed, dsn, taken, err, why)
		}
	}
}

// plain makes a connection string that everybody reads in one way.
func (m maker) plain() string {
	word := func() string { return m.one("a", "ada", "x_y", "tenant-1", "Z9", "d.e") }
	if m.IntN(3) == 0 {
		is := m.one("=", " = ", "= ", " =")
		return "password" + is + canary + word() + m.one("", "=", "==", "@b", ":c", "/d?e", "=f", `\'g`) + " host" + is +
			m.one("h", "10.0.0.7", "h1,h2", "::1") + " user" + is + word() + m.one("", "@corp.com") + " dbname" + is + word()
	}
	b, named := m.one("postgres://", "postgresql://"), m.IntN(2) == 0
	if named {
		b += word() + m.one("", "%40corp") + ":" + canary + m.one("", "%40", "%2F%3F", ":x", "=", "!$*") + "@"
	}
	b += m.one("h", "db.example", "[::1]", "[fe80::1]", "10.0.0.7", "h1,h2") + m.one("", ":5432", ":1") + "/" + word() +
		"?sslmode=" + m.one("disable", "prefer")
	if !named {
		b += "&user=" + word() + m.one("", "@corp.com")
	}
	return b + m.one("", "&application_name="+word()+m.one("", "@host"), "&connect_timeout=3")
}

// FuzzReadersAgree is the same on what the fuzzer finds.
func FuzzReadersAgree(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	m := maker{rand.New(rand.NewPCG(1, 2))}
	for range 50 {
		f.Add(m.dsn())
	}
	cleanEnvironment(f)
	f.Fuzz(func(t *testing.T, dsn string) {
		if _, err := disagreement(dsn); err != nil {
			t.Fatal(err)
		}
	})
}

// disagreement compares a server's reading of a connection string with pgx's own.
func disagreement(dsn string) (taken bool, err error) {
	server := Reader{Strict: true}
	read, refused := server.Read(dsn)
	got := read.ConnConfig
	shown, _ := server.Redact(dsn)
	if secret := secretOf(dsn); secret != "" && (strings.Contains(shown, secret) ||
		refused != nil && strings.Contains(fmt.Sprintf("%+v %v", refused, refused), secret)) {
		return false, fmt.Errorf("its secret is shown: %q, %w", shown, errors.Join(refused))
	}
	if refused != nil {
		return false, nil //nolint:nilerr // a refusal agrees with everything
	}
	want, err := readByPgx(dsn)
	if err != nil {
		return true, fmt.Errorf("pgx refuses it: %w", err)
	}
	if got.User != want.User || got.Database != want.Database || got.Password != want.Password ||
		fmt.Sprint(hostsOf(got)) != fmt.Sprint(dialled(want)) {
		return true, fmt.Errorf(
			"%v %s %s, and to pgx %v %s %s",
			hostsOf(got),
			got.User,
			got.Database,
			dialled(want),
			want.User,
			want.Database,
		)
	}
	if s, err := readSettings(dsn); shown == "***" && err == nil && plainHosts(s.effective()["host"]) &&
		!strings.Contains(got.Database, "@") {
		return true, errors.New("it is taken, and not shown")
	}
	if c, err := readByPgx(shown); shown != "***" && (err != nil || c.Host != want.Host || c.Port != want.Port ||
		c.User != want.User || c.Database != want.Database) {
		return true, fmt.Errorf("it is shown as %q, which is another: %w", shown, errors.Join(err))
	}
	return true, nil
}

func hostsOf(c *pgx.ConnConfig) (all []string) {
	for _, f := range append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}, c.Fallbacks...) {
		if at := fmt.Sprintf("%s %d", f.Host, f.Port); len(all) == 0 || all[len(all)-1] != at {
			all = append(all, at)
		}
	}
	return all
}

// readByPgx is pgx's own reading. Without a host, the addresses of hostaddr are the hosts to libpq, and to pgx a setting.
func readByPgx(dsn string) (*pgx.ConnConfig, error) {
	s, _ := readSettings(dsn)
	if m := s.effective(); m["hostaddr"] != "" && m["host"] == "" {
		m["host"] = m["hostaddr"]
		dsn = writePairs(m)
	}
	return pgx.ParseConfig(dsn)
}

// dialled are the hosts of pgx's reading, with the addresses of hostaddr in their places. To pgx that is a setting of the
// session.
func dialled(c *pgx.ConnConfig) []string {
	all := hostsOf(c)
	for i, address := range strings.Split(c.RuntimeParams["hostaddr"], ",") {
		if ip, err := netip.ParseAddr(address); err == nil && i < len(all) {
			all[i] = ip.String() + all[i][strings.LastIndexByte(all[i], ' '):]
		}
	}
	return all
}

// canary begins every password that a maker makes.
const canary = "Zq9"

// secretOf is what a reader must never tell of a connection string: where no @ follows, and none of its parameters is
// called a password, nobody could know that one was meant.
func secretOf(dsn string) string {
	i := strings.Index(dsn, canary)
	if i < 0 || !strings.Contains(dsn[i:], "@") && !strings.Contains(dsn[:i], "password") {
		return ""
	}
	return canary
}

// maker makes connection strings.
type maker struct{ *rand.Rand }

func (m maker) one(of ...string) string { return of[m.IntN(len(of))] }

// word is a name, possibly with a character that means something somewhere.
func (m maker) word() string {
	w := m.one("a", "ada", "db", "h1", "x.y", "tenant", "10.0.0.1", "5432", "z_9", "", "Ä")
	for m.IntN(6) == 0 {
		w += m.one(
			"@",
			"/",
			"?",
			"#",
			":",
			"=",
			"&",
			"%",
			"%40",
			"%2F",
			"%3a",
			"%00",
			"%zz",
			" ",
			"'",
			`\`,
			`\'`,
			",",
			"[",
			"]",
			"+",
			"\t",
			"\v",
			"-",
			"*",
			"://",
			"\x00",
			"é",
		) + m.one(
			"",
			"b",
			"7",
			"host=h",
			"x=y",
		)
	}
	return w
}

func (m maker) secret() string {
	if m.IntN(5) == 0 {
		return ""
	}
	return canary + m.word() + m.one("", "", m.word())
}

func (m maker) parameter(separator string) string {
	key := m.one("sslmode", "host", "port", "user", "dbname", "database", "connect_timeout", "application_name", "options",
		"target_session_attrs", "ssl", "hostaddr", "hostaddr", "load_balance_hosts", "keepalives", "gssencmode", "User", "x",
		m.word())
	value := m.one(
		"disable",
		"require",
		"prefer",
		"true",
		"1",
		"5432",
		"/tmp",
		"h2,h3",
		"any",
		"10.0.0.7",
		"fd00::7,10.0.0.8",
		"random",
		m.word(),
		m.word(),
	)
	return key + separator + value
}

func (m maker) dsn() string {
	if m.IntN(3) == 0 {
		return m.pairs()
	}
	b := m.one("postgres://", "postgresql://", "postgres://", "Postgres://", "postgres:/", "")
	if m.IntN(5) > 0 {
		b += m.word()
		if m.IntN(4) > 0 {
			b += ":" + m.secret()
		}
		b += m.one("@", "@", "@", "@", "@", "", "@@", "%40")
	}
	for range 1 + m.IntN(2) {
		b += m.one("h", "db.example", "[::1]", "[fe80::1%25eth0]", "10.0.0.7", "%2Ftmp", "/tmp", m.word()) +
			m.one("", ":5432", ":1", ":", ":x", ":70000", ":"+m.word()) + m.one("", "", ",")
	}
	b += m.one("", "/", "/", "/") + m.word()
	if m.IntN(2) == 0 {
		b += "?"
		for range 1 + m.IntN(3) {
			b += m.parameter("=") + m.one("&", "&", "&&", "", ";")
		}
	}
	return b
}

func (m maker) pairs() (b string) {
	for range 1 + m.IntN(4) {
		key, value := m.one("host", "port", "user", "dbname", "password"), m.word()
		switch {
		case key == "password":
			if strings.Contains(b, "password") {
				continue
			}
			value = m.secret()
		case key == "port" && m.IntN(4) > 0:
			value = m.one("5432", "1", "1,2")
		case m.IntN(5) == 0:
			b += m.parameter(m.one("=", " = ")) + m.one(" ", "\n")
			continue
		}
		switch m.IntN(4) {
		case 0:
			value = "'" + value + m.one("'", "'", "'", "")
		case 1:
			value = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
		}
		b += key + m.one("=", "=", " = ", "= ") + value + m.one(" ", " ", "\t", "\v")
	}
	return b
}
