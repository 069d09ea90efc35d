package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// restored are the attacks with what came back from a backup, and with what a copy of the database gives away.
var restored = []attack{
	{7, "credentials of a deleted user, after a restore", credentialsAfterRestore},
	{7, "a revoked node, after a restore", revokedNode},
	{7, "hashes of a copy of the database are compared with guesses", func(ctx context.Context, s *stage) (string, error) {
		known := 0
		for _, c := range s.users[oscar].tokens {
			sum := sha256.Sum256([]byte(c.Token))
			var n int
			if err := s.sql.QueryRow(
				ctx,
				"SELECT count(*) FROM api_tokens WHERE secret_sha256 = $1",
				sum[:],
			).Scan(
				&n,
			); err != nil {
				return "", err
			}
			known += n
		}
		if known > 0 {
			return "", fmt.Errorf("%d tokens are found by the SHA-256 of their secrets", known)
		}
		return "no token is found by the SHA-256 of its secret", nil
	}},
	{7, "a password is guessed at two servers by turns", func(ctx context.Context, s *stage) (string, error) {
		for n := range 60 {
			_, err := s.signIn(ctx, n%2, map[string]any{"name": "nobody-" + fmt.Sprint(n), "password": "wrong horse battery"})
			if program.Status(err) == http.StatusTooManyRequests {
				if n > 14 {
					return "", fmt.Errorf("it was refused after %d guesses", n)
				}
				// The other server has the same count.
				_, err := s.signIn(ctx, (n+1)%2, map[string]any{"name": "nobody", "password": "wrong horse battery"})
				if program.Status(err) != http.StatusTooManyRequests {
					return "", fmt.Errorf("the other server takes guesses: %w", err)
				}
				return fmt.Sprintf("refused by both after %d guesses", n), nil
			}
		}
		return "", errors.New("60 guesses were taken")
	}},
}

// credentialsAfterRestore makes a backup with all that lets a user in, deletes the user, and restores it elsewhere.
func credentialsAfterRestore(ctx context.Context, s *stage) (string, error) {
	const doomed = "doomed"
	if err := s.invite(ctx, doomed, "operator"); err != nil {
		return "", err
	}
	u := s.users[doomed]
	delete(s.users, doomed)
	var invitation, link struct{ URL string }
	if err := s.admin[0].Do(ctx, http.MethodPost, "/api/users/"+u.id+"/invitation", nil, &invitation); err != nil {
		return "", err
	}
	if err := s.admin[0].Do(ctx, http.MethodPost, "/api/auth/signin-links", map[string]any{}, &link); err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "doomed.backup")
	if out, err := s.run("backup", "backup", "--database-url", s.dsn(control), "--data-dir", s.dataDir(0), "--out",
		file); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if err := s.admin[0].Do(ctx, http.MethodDelete, "/api/users/"+u.id, nil, nil); err != nil {
		return "", err
	}
	base, end, err := s.serveRestored(ctx, file)
	if err != nil {
		return "", err
	}
	defer end()
	for i := range u.tokens {
		for what, c := range map[string]*program.Client{"token": {Base: base, Token: u.tokens[i].Token},
			"session": {Base: base, Cookie: u.sessions[i].Cookie}} {
			err := c.Do(ctx, http.MethodGet, "/api/auth/me", nil, nil)
			if got := program.Status(err); got != http.StatusUnauthorized {
				return "", fmt.Errorf("a %s of the deleted user gets %d", what, got)
			}
		}
	}
	for name, address := range map[string]string{"invitation": invitation.URL, "token": link.URL} {
		at, err := url.Parse(address)
		if err != nil {
			return "", err
		}
		in := map[string]any{name: at.Query().Get(name)}
		if name == "invitation" {
			in["password"] = "another stage of attacks"
		}
		err = (&program.Client{Base: base}).Do(ctx, http.MethodPost, "/api/auth/signin", in, nil)
		if got := program.Status(err); got != http.StatusUnauthorized {
			return "", fmt.Errorf("the %s of before gets %d", name, got)
		}
	}
	return "tokens, sessions, the invitation and the sign-in link get 401", nil
}

// serveRestored restores a backup into a database of its own and serves it.
func (s *stage) serveRestored(ctx context.Context, file string) (base string, end func(), err error) {
	if _, err := s.sql.Exec(ctx, "CREATE DATABASE restored"); err != nil {
		return "", nil, err
	}
	dir := filepath.Join(s.dir, "restored")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	key, err := os.ReadFile(filepath.Join(s.dataDir(0), "loadstone.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "loadstone.key"), key, 0o600)
	}
	if err != nil {
		return "", nil, err
	}
	out, err := s.run("restore", "restore", file, "--data-dir", dir, "--database-url", s.dsn("restored"))
	if err == nil && !strings.Contains(out, "Void: ") {
		err = errors.New("the command does not say what is void")
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: %s", err, out)
	}
	server, err := s.launch("restored", "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--database-url",
		s.dsn("restored"))
	if err != nil {
		return "", nil, err
	}
	operator, err := program.Operator(ctx, server, filepath.Join(dir, "operator.json"))
	if err != nil {
		server.Kill()
		return "", nil, err
	}
	return operator.Base, server.Kill, nil
}
