package embedded

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
)

// secretSize is how many random bytes the password has.
const secretSize = 32

// secret returns the password of the control store's roles, made when there is
// none. It lies beside the key, in a file that only this process's user reads.
func (p layout) secret() (string, error) {
	path := filepath.Join(p.data, "postgres.secret")
	text, err := os.ReadFile(path)
	if password := strings.TrimSpace(string(text)); err == nil && wellFormed(password) {
		return password, os.Chmod(path, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", unusable(path, err)
	}
	raw := make([]byte, secretSize)
	// rand.Read never fails: it ends the program when the system has no randomness.
	_, _ = rand.Read(raw)
	password := base64.RawURLEncoding.EncodeToString(raw)
	draft, err := os.CreateTemp(p.data, ".postgres.secret-*") // mode 0600
	if err != nil {
		return "", unusable(p.data, err)
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(password + "\n")
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return "", unusable(path, err)
	}
	return password, nil
}

func wellFormed(password string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(password)
	return err == nil && len(raw) == secretSize
}

// errPassword: the cluster does not know the password, as after an upgrade from a
// version without one, or when its file was lost.
var errPassword = errors.New("the control store does not know its password")

// setPassword sets the superuser's password in a cluster that does not run.
func (p layout) setPassword(ctx context.Context, in install, id identity) error {
	cmd := exec.CommandContext(ctx, filepath.Join(in.dir, "postgres"), "--single", "-D", p.cluster,
		"-c", "log_min_error_statement=panic", "-c", "password_encryption=scram-sha-256", "postgres")
	cmd.Dir = p.cluster
	cmd.Env = id.environment(p)
	cmd.SysProcAttr = id.attributes(syscall.SIGINT)
	cmd.Stdin = strings.NewReader("ALTER ROLE " + superuser + " PASSWORD '" + p.password + "'\n")
	out, err := lockedOutput(cmd)
	if err == nil && (strings.Contains(string(out), "ERROR:") || strings.Contains(string(out), "FATAL:")) {
		err = errors.New("it reports an error")
	}
	if err != nil {
		return &engine.Error{Code: engine.CodeUnavailable,
			Cause:   fmt.Errorf("setting the password: %w: %s", err, strings.ReplaceAll(string(out), p.password, "***")),
			Message: "The password of the embedded Postgres could not be set.", Hint: "Its log is " + p.log + "."}
	}
	return nil
}
