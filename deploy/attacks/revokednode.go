package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// revokedNode has a node join a server of its own, revokes it, and brings back the backup of before.
func revokedNode(ctx context.Context, s *stage) (string, error) {
	if _, err := s.sql.Exec(ctx, "CREATE DATABASE revoked"); err != nil {
		return "", err
	}
	server, node := filepath.Join(s.dir, "revoked-server"), filepath.Join(s.dir, "revoked-node")
	for _, dir := range []string{server, node} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
	}
	if out, err := s.run("schema", "schema", "apply", "--database-url", s.dsn("revoked")); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	serving, admin, err := s.serveOwn(ctx, server, "revoked")
	if err != nil {
		return "", err
	}
	defer serving.Kill()
	var token struct{ Secret string }
	if err := admin.Do(ctx, http.MethodPost, "/api/v1/node-tokens", map[string]any{}, &token); err != nil {
		return "", err
	}
	worker, address, err := s.startNode(ctx, node, "--join", token.Secret)
	if err != nil {
		return "", err
	}
	defer worker.Kill()
	if err := admin.Do(
		ctx,
		http.MethodPost,
		"/api/v1/node-addresses",
		map[string]any{"address": address},
		nil,
	); err != nil {
		return "", err
	}
	var id string
	if err := program.Until(ctx, program.StartLimit, "the node joins", func() (bool, error) {
		id = activeNode(ctx, admin, address)
		return id != "", worker.Gone()
	}); err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "revoked.backup")
	if out, err := s.run("backup", "backup", "--database-url", s.dsn("revoked"), "--data-dir", server, "--out",
		file); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if err := admin.Do(ctx, http.MethodPost, "/api/v1/nodes/"+id+"/revoke", nil, nil); err != nil {
		return "", err
	}
	if err := serving.Signal(syscall.SIGTERM); err != nil {
		return "", err
	}
	<-serving.Done()
	if out, err := s.run("restore", "restore", file, "--replace", "--data-dir", server, "--database-url",
		s.dsn("revoked")); err != nil || !strings.Contains(out, "certificate of a node") {
		return "", fmt.Errorf("the restore does not name the certificate, %w: %s", err, out)
	}
	// The node's own restart changes nothing.
	worker.Kill()
	<-worker.Done()
	restarted, address, err := s.startNode(ctx, node)
	if err != nil {
		return "", err
	}
	defer restarted.Kill()
	restored, admin, err := s.serveOwn(ctx, server, "revoked")
	if err != nil {
		return "", err
	}
	defer restored.Kill()
	if err := admin.Do(
		ctx,
		http.MethodPost,
		"/api/v1/node-addresses",
		map[string]any{"address": address},
		nil,
	); err != nil {
		return "", err
	}
	err = program.Until(ctx, program.StartLimit, "the node is refused", func() (bool, error) {
		if activeNode(ctx, admin, address) != "" {
			return false, errors.New("a revoked node is accepted after a restore")
		}
		return strings.Contains(restarted.Output(), "does not believe this node's certificate"), restarted.Gone()
	})
	return "the node is refused by the restored server, and the restore names its certificate", err
}

// serveOwn serves a database of its own.
func (s *stage) serveOwn(ctx context.Context, dir, database string) (*program.Process, *program.Client, error) {
	_ = os.Remove(filepath.Join(dir, "operator.json")) // of the server before
	server, err := s.launch("server of "+database, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--database-url",
		s.dsn(database), "--local-capacity", "0")
	if err != nil {
		return nil, nil, err
	}
	operator, err := program.Operator(ctx, server, filepath.Join(dir, "operator.json"))
	if err != nil {
		server.Kill()
		return nil, nil, err
	}
	admin, err := newToken(ctx, operator, "admin")
	return server, admin, err
}

// startNode starts a node, and returns where it listens.
func (s *stage) startNode(ctx context.Context, dir string, args ...string) (*program.Process, string, error) {
	node, err := s.launch("node", append([]string{"worker", "--listen", "127.0.0.1:0", "--data-dir", dir}, args...)...)
	if err != nil {
		return nil, "", err
	}
	address := ""
	err = program.Until(ctx, 30*time.Second, "a node", func() (bool, error) {
		if _, after, ok := strings.Cut(node.Output(), " listens on "); ok {
			if line, _, whole := strings.Cut(after, "\n"); whole {
				address = strings.TrimSpace(line)
			}
		}
		return address != "", node.Gone()
	})
	return node, address, err
}

// activeNode is the name of the node at an address that takes work, "" where there is none.
func activeNode(ctx context.Context, c *program.Client, address string) string {
	var all struct {
		Nodes []struct {
			ID      string `json:"node_id"`
			Address string
			State   string
		}
	}
	if err := c.Do(ctx, http.MethodGet, "/api/v1/nodes", nil, &all); err != nil {
		return ""
	}
	for _, n := range all.Nodes {
		if n.Address == address && n.State == "ACTIVE" {
			return n.ID
		}
	}
	return ""
}
