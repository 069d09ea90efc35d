// Command s3server is a real S3 server, VersityGW on a folder, for the tests of
// results that are kept in one. It listens on loopback, knows one user, and ends
// with its standard input, so that it never outlives who started it.
//
// usage: s3server FOLDER HOST:PORT; the user is S3SERVER_ACCESS with S3SERVER_SECRET
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/metrics"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"
)

const region = "us-east-1"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: s3server FOLDER HOST:PORT")
		os.Exit(2)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "s3server:", err)
		os.Exit(1)
	}
}

func serve(folder, address string) error {
	objects, attributes := filepath.Join(folder, "objects"), filepath.Join(folder, "attributes")
	for _, dir := range []string{objects, attributes} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
	}
	// Beside the objects, because not every file system has extended attributes.
	kept, err := meta.NewSideCar(attributes)
	if err != nil {
		return fmt.Errorf("opening %s: %w", attributes, err)
	}
	backend, err := posix.New(objects, kept, posix.PosixOpts{SideCarDir: attributes, ValidateBucketNames: true})
	if err != nil {
		return fmt.Errorf("opening %s: %w", objects, err)
	}
	defer backend.Shutdown()
	access, secret := os.Getenv("S3SERVER_ACCESS"), os.Getenv("S3SERVER_SECRET")
	users := auth.NewIAMServiceSingle(auth.Account{Access: access, Secret: secret, Role: auth.RoleAdmin})
	counted, err := metrics.NewManager(context.Background(), metrics.Config{})
	if err != nil {
		return fmt.Errorf("preparing metrics: %w", err)
	}
	server, err := s3api.New(backend, middlewares.RootUserConfig{Access: access, Secret: secret}, region, users, nil, nil,
		nil, counted, s3api.WithQuiet(), s3api.WithKeepAlive(), s3api.WithConcurrencyLimiter(1000, 1000))
	if err != nil {
		return fmt.Errorf("preparing the server: %w", err)
	}
	return server.ServeMultiPort([]string{address})
}
