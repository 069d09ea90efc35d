package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/storage/embedded"
)

// modelsEnv names the folder of models that the test binaries of one run share: deploy/scratch.sh makes and removes it.
// Without it each test binary has its own.
const modelsEnv = "LOADSTONE_TEST_MODELS"

// Model is a data directory with a cluster, of which others are copies: making one takes half a second of a processor
// and more, and a copy a tenth of that.
type Model struct {
	// Name tells it from other models.
	Name string
	// Fill leaves a folder with a cluster that does not run.
	Fill func(ctx context.Context, dir string) error

	once sync.Once
	dir  string
	err  error
}

// Copy puts a cluster into a data directory that has none.
func (m *Model) Copy(to string) error {
	m.once.Do(func() { m.dir, m.err = m.find() })
	if m.err != nil {
		return fmt.Errorf("making the model %s: %w", m.Name, m.err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, part := range []string{"postgres", "postgres.secret"} {
		if err := copyTree(filepath.Join(m.dir, part), filepath.Join(to, part)); err != nil {
			return fmt.Errorf("copying the model %s: %w", m.Name, err)
		}
	}
	return nil
}

// find returns the model's folder, which is made unless another test binary has made it.
func (m *Model) find() (string, error) {
	parent := os.Getenv(modelsEnv)
	if parent == "" {
		var err error
		if parent, err = ownModels(); err != nil {
			return "", err
		}
	}
	lock, err := os.OpenFile(filepath.Join(parent, m.Name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	dir := filepath.Join(parent, m.Name)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	draft := dir + ".new" // of a test binary that was killed
	if err := os.RemoveAll(draft); err != nil {
		return "", err
	}
	if err := os.Mkdir(draft, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.Fill(ctx, draft); err != nil {
		return "", err
	}
	return dir, os.Rename(draft, dir)
}

// own is the folder of this test binary's models.
var own struct {
	sync.Mutex
	dir string
}

func ownModels() (string, error) {
	own.Lock()
	defer own.Unlock()
	if own.dir != "" {
		return own.dir, nil
	}
	sweep()
	var err error
	if own.dir, err = newFolder(); err != nil {
		return "", err
	}
	return own.dir, nil
}

func removeModels() error {
	own.Lock()
	defer own.Unlock()
	if own.dir == "" {
		return nil
	}
	dir := own.dir
	own.dir = ""
	return os.RemoveAll(dir)
}

// The models of Start and StartCrashable. They are two because a target must not be where the control store is, which
// the system identifier tells.
var (
	throwaway = &Model{Name: "throwaway", Fill: fillThrowaway}
	crashable = &Model{Name: "crashable", Fill: fillThrowaway}
)

func fillThrowaway(ctx context.Context, dir string) error {
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: dir, Log: zerolog.Nop(), Throwaway: true})
	if err != nil {
		return err
	}
	return pg.Stop(ctx)
}

// copyTree copies a file, or a folder with all that is in it, with its owner; what is not there is not copied.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if path == from && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := to + path[len(from):]
		if d.IsDir() {
			err = os.Mkdir(target, info.Mode().Perm())
		} else {
			err = copyFile(path, target, info.Mode().Perm())
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && err == nil && int(st.Uid) != os.Geteuid() {
			err = os.Lchown(target, int(st.Uid), int(st.Gid))
		}
		return err
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
