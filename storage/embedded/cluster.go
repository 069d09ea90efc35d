package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
)

// The roles and databases of a cluster.
const (
	ControlDatabase    = "loadstone"
	PlaygroundDatabase = "playground"
	// SnowsimDatabase is what the stand-in for a Snowflake account runs statements on.
	SnowsimDatabase = "snowsim"
	superuser       = "loadstone"
)

// guestDatabases are the databases whose users may run any SQL in them. Each is owned by
// a role of its own name, which can connect to nothing else.
var guestDatabases = []string{PlaygroundDatabase, SnowsimDatabase}

// settings are sized for one machine that hosts the control store and is a
// target of a few hundred connections at the same time.
var settings = map[string]string{
	"listen_addresses":        "",
	"unix_socket_permissions": "0700",
	"max_connections":         "300",
	"shared_buffers":          "128MB",
	"synchronous_commit":      "on",
	"fsync":                   "on",
	// Nothing replicates, and minimal WAL makes COPY into a new table cheap.
	"wal_level":            "minimal",
	"max_wal_senders":      "0",
	"max_wal_size":         "2GB",
	"checkpoint_timeout":   "15min",
	"random_page_cost":     "1.1",
	"jit":                  "off",
	"update_process_title": "off",
	"timezone":             "UTC",
	"log_timezone":         "UTC",
	"log_line_prefix":      "%m [%p] %d ",
	"log_checkpoints":      "off",
	"cluster_name":         "loadstone",
	"logging_collector":    "off",
	"log_destination":      "stderr",
}

// create makes the cluster unless it is there. A cluster appears under its
// final name only when it is whole. fresh reports that it was made now.
func (p layout) create(ctx context.Context, in install, id identity, durable bool) (fresh bool, err error) {
	if _, err := os.Stat(filepath.Join(p.cluster, "PG_VERSION")); err == nil {
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, unusable(p.cluster, err)
	}
	draft := p.cluster + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return false, unusable(draft, err)
	}
	if err := os.Mkdir(draft, 0o700); err != nil {
		return false, unusable(draft, err)
	}
	if err := id.chown(draft); err != nil {
		return false, unusable(draft, err)
	}
	args := []string{"-D", draft, "-U", superuser, "--encoding=UTF8", "--locale=C", "--auth=peer", "--no-instructions"}
	if !durable {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(in.dir, "initdb"), args...)
	cmd.Dir = draft
	cmd.Env = id.environment(p)
	cmd.SysProcAttr = id.attributes(syscall.SIGKILL)
	out, err := lockedOutput(cmd)
	if err != nil {
		// initdb may have emptied the folder; what is left is of no use.
		_ = os.RemoveAll(draft)
		return false, creationFailed(p, string(out), err)
	}
	if err := os.Rename(draft, p.cluster); err != nil {
		return false, unusable(p.cluster, err)
	}
	return true, nil
}

// diskFull reports whether Postgres said, in one of its ways, that there is no space.
func diskFull(out string) bool {
	for _, sign := range []string{"No space left on device", "Disk quota exceeded", "wrote only",
		"Check free disk space"} {
		if strings.Contains(out, sign) {
			return true
		}
	}
	return false
}

func creationFailed(p layout, out string, err error) error {
	if diskFull(out) {
		return unusable(p.home, fmt.Errorf("making the cluster: %w", syscall.ENOSPC))
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	detail := ""
	for _, line := range lines {
		if strings.Contains(line, "error:") || strings.Contains(line, "FATAL:") {
			detail = ": " + strings.TrimSpace(line)
			break
		}
	}
	return &engine.Error{Code: engine.CodeUnavailable, Cause: fmt.Errorf("running initdb: %w: %s", err, out),
		Message: "Postgres could not make its data directory " + p.cluster + detail + ".",
		Hint:    "Choose another data directory with --data-dir, or use --database-url."}
}

// lockedOutput runs cmd on a thread that outlives it, because the parent-death
// signal is tied to the thread, not to the process.
func lockedOutput(cmd *exec.Cmd) ([]byte, error) {
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		out, err := cmd.CombinedOutput()
		done <- result{out, err}
	}()
	r := <-done
	return r.out, r.err
}

// environment is what Postgres inherits: nothing that could redirect it.
func (id identity) environment(p layout) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + p.home}
	if id.preload != "" {
		env = append(env, "LD_PRELOAD="+id.preload,
			"NSS_WRAPPER_PASSWD="+p.passwd(), "NSS_WRAPPER_GROUP="+p.group())
	}
	return env
}

func (p layout) passwd() string { return filepath.Join(p.home, "postgres.passwd") }
func (p layout) group() string  { return filepath.Join(p.home, "postgres.group") }

// name writes the files that nss_wrapper reads.
func (p layout) name(id identity) error {
	if id.preload == "" {
		return nil
	}
	err := os.WriteFile(p.passwd(), fmt.Appendf(nil, "%s:x:%d:%d:Loadstone:%s:/bin/sh\n", id.name, id.uid, id.gid, p.home),
		0o600)
	if err == nil {
		err = os.WriteFile(p.group(), fmt.Appendf(nil, "%s:x:%d:\n", id.name, id.gid), 0o600)
	}
	if err != nil {
		return unusable(p.home, err)
	}
	return nil
}

// configure writes the cluster's configuration; it belongs to Loadstone and is
// written at each start. loadstone.local.conf is the user's and wins.
func (p layout) configure(id identity, extra map[string]string) error {
	all := maps.Clone(settings)
	all["unix_socket_directories"] = p.socket
	maps.Copy(all, extra)
	var conf strings.Builder
	conf.WriteString("# Written by Loadstone at each start. Put your own settings into loadstone.local.conf.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	// Included by name only when it is there: Postgres logs each time it is not.
	if _, err := os.Stat(filepath.Join(p.cluster, "loadstone.local.conf")); err == nil {
		conf.WriteString("include = 'loadstone.local.conf'\n")
	}
	hba, ident := p.access(id)
	for name, text := range map[string]string{"postgresql.conf": conf.String(), "pg_hba.conf": hba,
		"pg_ident.conf": ident} {
		path := filepath.Join(p.cluster, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return unusable(p.cluster, err)
		}
		if err := id.chown(path); err != nil {
			return unusable(p.cluster, err)
		}
	}
	return nil
}

// access says who gets in: the playground's role by the system's user, because
// its connection is shown to everybody, and all others by the password alone.
// Whoever may have this process connect somewhere must not become the superuser by it.
func (p layout) access(id identity) (hba, ident string) {
	hba = "# Written by Loadstone at each start.\n"
	ident = hba
	admit := func(database, role string) {
		if p.password != "" && role != PlaygroundDatabase {
			hba += fmt.Sprintf("local %s %s scram-sha-256\n", database, role)
			return
		}
		hba += fmt.Sprintf("local %s %s peer map=loadstone\n", database, role)
		for _, peer := range id.peers() {
			ident += fmt.Sprintf("loadstone %q %s\n", peer, role)
		}
	}
	for _, guest := range guestDatabases {
		admit(guest, guest)
	}
	admit(ResultsDatabase, ResultsDatabase)
	if p.password != "" {
		// Its members are people who read results; no other database lets them in.
		admit(ResultsDatabase, "+"+ResultsReader)
	} else {
		admit(ResultsDatabase, ResultsReader)
	}
	admit("all", superuser)
	return hba + p.remoteAccess(), ident
}

// major returns the major version that made the cluster, 0 when there is none.
func (p layout) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(p.cluster, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, unusable(p.cluster, err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("reading the cluster's version: %w", err)
	}
	return major, nil
}

// dsn returns a key/value connection string for the socket.
func (p layout) dsn(database, role string) string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
	}
	dsn := fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", quote(p.socket), p.port, role, quote(database))
	if p.password != "" && role != PlaygroundDatabase {
		dsn += " password=" + p.password
	}
	return dsn
}
