package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/deploy/program"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// password is what all users of the stage have chosen.
const password = "a stage of nine attacks"

// The users of a stage beside its admin: two operators and a viewer.
const (
	oscar = "oscar"
	olga  = "olga"
	vera  = "vera"
)

// stage is two servers on one external Postgres.
type stage struct {
	dir, binary string
	postgres    *embedded.Postgres
	port        int // of the Postgres, on 127.0.0.1 and ::1
	// sql is the superuser in the control store.
	sql     *pgx.Conn
	servers []*program.Process
	// admin is the operator of the first server; users sign in to both.
	admin []*program.Client
	users map[string]user
}

// user is who has signed in, by a token of the scope write and by a session, on each server.
type user struct {
	id       string
	tokens   []*program.Client
	sessions []*program.Client
}

// superuser is the superuser of the Postgres of a stage.
const superuser = "loadstone"

// trust lets everybody in who comes from this machine, as many a database does on a developer's.
const trust = "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n"

// The databases of a stage.
const (
	control = "control"
	results = "results_store"
	target  = "target"
)

// open starts all of it; who gets an error has nothing to close.
func open(ctx context.Context, binary string) (_ *stage, err error) {
	dir, err := program.Folder("loadstone-attacks-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, binary: binary, users: map[string]user{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.openPostgres(ctx); err != nil {
		return nil, err
	}
	apply, err := s.launch("schema", "schema", "apply", "--database-url", s.dsn(control))
	if err != nil {
		return nil, err
	}
	if err := apply.Wait(); err != nil {
		return nil, fmt.Errorf("applying the schema: %w: %s", err, apply.Output())
	}
	if s.sql, err = pgx.Connect(ctx, s.dsn(control)); err != nil {
		return nil, err
	}
	for i := range 2 {
		if err := s.openServer(ctx, i); err != nil {
			return nil, err
		}
	}
	for name, role := range map[string]string{oscar: "operator", olga: "operator", vera: "viewer"} {
		if err := s.invite(ctx, name, role); err != nil {
			return nil, fmt.Errorf("inviting %s: %w", name, err)
		}
	}
	return s, nil
}

// openPostgres starts the Postgres, and makes its databases and the reader of results.
func (s *stage) openPostgres(ctx context.Context) error {
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		return err
	}
	hba := filepath.Join(s.dir, "pg_hba.conf")
	if err := os.WriteFile(hba, []byte(trust), 0o644); err != nil {
		return err
	}
	s.postgres, err = embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(s.dir, "postgres"), Log: zerolog.Nop(),
		Throwaway: true, Listen: &embedded.Listen{Host: "127.0.0.1", Port: s.port},
		Settings: map[string]string{"hba_file": hba, "listen_addresses": "127.0.0.1,::1", "max_connections": "200"}})
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.dsn("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range []string{"CREATE DATABASE " + control, "CREATE ROLE results_owner LOGIN",
		"CREATE DATABASE " + results + " OWNER results_owner", "CREATE ROLE results_reader LOGIN",
		"CREATE ROLE target_owner LOGIN", "CREATE DATABASE " + target + " OWNER target_owner"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// dsn is a database over TCP as the superuser.
func (s *stage) dsn(database string) string { return s.dsnAs(superuser, database) }

// dsnAs is a database over TCP as a role.
func (s *stage) dsnAs(role, database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", role, s.port, database)
}

// socketDSN is a database over the unix socket as a role.
func (s *stage) socketDSN(role, database string) string {
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s", s.postgres.SocketDir(), s.port, role, database)
}

func (s *stage) launch(name string, args ...string) (*program.Process, error) {
	return program.Launch(s.binary, name, nil, args...)
}

// run runs the program to its end, and returns what it printed.
func (s *stage) run(name string, args ...string) (string, error) {
	p, err := s.launch(name, args...)
	if err != nil {
		return "", err
	}
	err = p.Wait()
	return p.Output(), err
}

// dataDir is the data directory of a server.
func (s *stage) dataDir(i int) string { return filepath.Join(s.dir, fmt.Sprintf("server-%d", i+1)) }

// openServer starts server i. Servers of one store share the key that seals.
func (s *stage) openServer(ctx context.Context, i int) error {
	if err := os.MkdirAll(s.dataDir(i), 0o700); err != nil {
		return err
	}
	if i > 0 {
		key, err := os.ReadFile(filepath.Join(s.dataDir(0), "loadstone.key"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.dataDir(i), "loadstone.key"), key, 0o600); err != nil {
			return err
		}
	}
	server, err := s.launch(fmt.Sprintf("server %d", i+1), "serve", "--listen", "127.0.0.1:0", "--data-dir", s.dataDir(i),
		"--database-url", s.dsn(control), "--results-database-url", s.dsnAs("results_owner", results),
		"--results-reader-url", s.dsnAs("results_reader", results))
	if err != nil {
		return err
	}
	s.servers = append(s.servers, server)
	operator, err := program.Operator(ctx, server, filepath.Join(s.dataDir(i), "operator.json"))
	if err != nil {
		return err
	}
	// The operator's secret makes a token, as loadstone token does.
	made, err := newToken(ctx, operator, "admin")
	if err != nil {
		return err
	}
	s.admin = append(s.admin, made)
	return nil
}

func newToken(ctx context.Context, c *program.Client, scope string) (*program.Client, error) {
	var made struct{ Secret string }
	err := c.Do(ctx, http.MethodPost, "/api/auth/tokens", map[string]any{"name": "attacks " + uuid.NewString()[:8],
		"scope": scope, "expires_in_days": 1}, &made)
	return &program.Client{Base: c.Base, Token: made.Secret}, err
}

// invite makes a user that signs in to both servers.
func (s *stage) invite(ctx context.Context, name, role string) error {
	var made struct {
		User struct {
			ID string `json:"user_id"`
		}
		URL string
	}
	if err := s.admin[0].Do(ctx, http.MethodPost, "/api/users", map[string]any{"name": name, "role": role},
		&made); err != nil {
		return err
	}
	link, err := url.Parse(made.URL)
	if err != nil {
		return err
	}
	u := user{id: made.User.ID}
	in := map[string]any{"invitation": link.Query().Get("invitation"), "password": password}
	for i := range s.servers {
		session, err := s.signIn(ctx, i, in)
		if err != nil {
			return err
		}
		in = map[string]any{"name": name, "password": password}
		scope := "write"
		if role == "viewer" {
			scope = "read"
		}
		token, err := newToken(ctx, session, scope)
		if err != nil {
			return err
		}
		u.sessions, u.tokens = append(u.sessions, session), append(u.tokens, token)
	}
	s.users[name] = u
	return nil
}

// signIn returns a session on server i.
func (s *stage) signIn(ctx context.Context, i int, in map[string]any) (*program.Client, error) {
	return signInAt(ctx, s.admin[i].Base, in)
}

// signInAt returns a session on the server of an address.
func signInAt(ctx context.Context, base string, in map[string]any) (*program.Client, error) {
	_, header, err := (&program.Client{Base: base}).Send(ctx, http.MethodPost, "/api/auth/signin", in)
	if err != nil {
		return nil, err
	}
	for _, c := range (&http.Response{Header: header}).Cookies() {
		if c.Value != "" {
			return &program.Client{Base: base, Cookie: c.Name + "=" + c.Value}, nil
		}
	}
	return nil, errors.New("signing in gave no session")
}

// refused is nil where err is the refusal of a request that says one of the words.
func refused(err error, words ...string) error {
	status := program.Status(err)
	switch {
	case err == nil:
		return errors.New("it was let through")
	case status < 400 || status >= 500:
		return fmt.Errorf("it was not refused, it failed: %w", err)
	}
	for _, w := range words {
		if strings.Contains(err.Error(), w) {
			return nil
		}
	}
	if len(words) == 0 {
		return nil
	}
	return fmt.Errorf("it was refused, but the answer does not say %q: %w", words, err)
}

// close ends all that is left and removes it.
func (s *stage) close() {
	for _, p := range s.servers {
		p.Kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), program.StartLimit)
	defer cancel()
	if s.sql != nil {
		_ = s.sql.Close(ctx)
	}
	if s.postgres != nil {
		if err := s.postgres.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "attacks: stopping Postgres:", err)
		}
	}
	_ = os.RemoveAll(s.dir)
}
