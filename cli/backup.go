// This part is loadstone backup and loadstone restore.

package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/backup"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/keyring"
)

const keyFileName = keyring.FileName

// BackupCommand is loadstone backup.
type BackupCommand struct {
	Out        string `required:"" placeholder:"FILE|DIR" help:"File or folder to write to; a folder gets a file named by the time. Existing files are not overwritten."`
	Executions bool   `help:"Include the single executions of all runs, which may be large."`
	WithKey    bool   `name:"with-key" help:"Include the key that seals secrets. Anyone with the file can then read every secret."`
	wiring.StoreFlags
}

// Help is shown by --help.
func (*BackupCommand) Help() string {
	return `Servers may run, and runs go on meanwhile: it is of one moment. It holds runs, templates, connections, users,
settings, uploaded plugins and the audit log. Without --with-key the secrets in it (connections, notifications) are
sealed, and can be opened only beside loadstone.key of the data directory, or LOADSTONE_KEY: keep it elsewhere.`
}

// Run writes a backup.
func (c *BackupCommand) Run(e *terminal.Env) error {
	dir := cmp.Or(c.DataDir, wiring.DefaultDataDir())
	url, err := c.URL()
	if err == nil && url == "" {
		err = embedded.CheckExists(dir)
	}
	if err == nil {
		dir, err = wiring.MakeDataDir(dir)
	}
	if err != nil {
		return err
	}
	path := c.Out
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "loadstone-"+time.Now().UTC().Format("20060102-150405")+".backup")
	} else if err == nil {
		return engine.InvalidField("--out", path+" is there already", "name another file, or a folder")
	} else if folder := filepath.Dir(path); missingParts(folder) {
		return engine.InvalidField("--out", "the folder "+folder+" does not exist", "create it first")
	}
	o := backup.Options{Program: e.Version}
	if c.WithKey {
		o.Key = func() ([]byte, error) {
			key, err := os.ReadFile(filepath.Join(dir, keyFileName))
			if err != nil {
				return nil, engine.InvalidField("--with-key", "the key cannot be read: "+err.Error(),
					"leave it out where LOADSTONE_KEY holds the key")
			}
			return key, nil
		}
	}
	url, done, err := controlURL(e.Ctx, url, dir, false, e.Log)
	if err != nil {
		return err
	}
	defer done()
	if c.Executions {
		record, done, err := c.OpenRecord(e.Ctx, dir, e.Log)
		if err != nil {
			return err
		}
		defer done()
		o.Parts = record
	}
	f, err := os.OpenFile(path+".part", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return engine.InvalidField("--out", "cannot be written: "+err.Error(), "name another file")
	}
	m, err := backup.Write(e.Ctx, url, f, o)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		_ = os.Remove(path + ".part") // what is half is nothing
		return err
	}
	_, _ = fmt.Fprintf(e.Stdout, "%s: %s\n", path, backupSummary(m))
	for _, name := range m.Missing {
		_, _ = fmt.Fprintf(e.Stderr, "not there, and not in the backup: %s\n", name)
	}
	return nil
}

func missingParts(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func backupSummary(m backup.Manifest) string {
	return strings.Join([]string{
		plural(m.Rows("run_status"), "run", "runs"),
		plural(m.Rows("test_templates"), "template", "templates"),
		plural(m.Rows("connections"), "connection", "connections"),
		plural(m.Rows("users"), "user", "users"),
		plural(int64(len(m.Files)), "file of executions", "files of executions"),
	}, ", ")
}

// plural is a number of things in words.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// RestoreCommand is loadstone restore.
type RestoreCommand struct {
	File       string `arg:"" help:"The backup."`
	Replace    bool   `help:"Overwrite a non-empty control store."`
	KeepTokens bool   `name:"keep-tokens" help:"Keep the API tokens of the backup, including those revoked since. By default they are void."`
	LostKey    bool   `name:"lost-key" help:"The backup's key is lost: give up the secrets sealed under it, and use the data directory's key, or a new one."`
	wiring.StoreFlags
}

// Help is shown by --help.
func (*RestoreCommand) Help() string {
	return `A backup does not know who was locked out, or which token was revoked, after it was made. So its sessions,
sign-in links, invitations, links to reports and join tokens of nodes do not work after a restore, and its API tokens
only with --keep-tokens. Users who are locked stay locked; with --replace also those whom the replaced store had locked
or deleted. Roles and passwords are those of the backup: lock, again, whoever has left since.`
}

// Run puts a backup into a control store.
func (c *RestoreCommand) Run(e *terminal.Env) error {
	b, err := backup.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // only read
	dir, err := wiring.MakeDataDir(cmp.Or(c.DataDir, wiring.DefaultDataDir()))
	if err != nil {
		return err
	}
	sealed, err := c.key(b.Key, dir)
	if err != nil {
		return err
	}
	if err := c.checkLostKey(b.Key != nil); err != nil {
		return err
	}
	if err := c.restore(e, b, dir); err != nil {
		return err
	}
	if c.LostKey {
		return c.giveUpKey(e)
	}
	if !sealed && b.Key == nil {
		if sealed, err = c.lacksKey(e); err != nil {
			return err
		}
	}
	if sealed {
		_, _ = fmt.Fprintf(
			e.Stderr,
			"The key of its secrets is neither in it nor in %[2]s: put the %[1]s of that server there "+
				"before a server starts, or set LOADSTONE_KEY. Where it is lost for good, call `loadstone restore --replace "+
				"--lost-key`, or `loadstone keys rotate --lost-key`: %[3]s\n",
			keyFileName,
			dir,
			lostKeyCost,
		)
	}
	return nil
}

// lacksKey reports whether something that was restored is sealed under a key that is not here.
func (c *RestoreCommand) lacksKey(e *terminal.Env) (bool, error) {
	s, _, done, err := openKeys(e, c.StoreFlags, keyring.OpenExisting)
	if err != nil {
		return false, err
	}
	defer done()
	counts, err := s.CountSealed(e.Ctx)
	if err != nil {
		return false, err
	}
	return s.CheckKeys(counts) != nil, nil
}

// lostKeyCost says what is given up with a key.
const lostKeyCost = "the passwords of connections and the secrets of notifications have to be entered again, API " +
	"tokens are void, and nodes join again."

// checkLostKey refuses --lost-key where nothing is lost, and with what could not be done then.
func (c *RestoreCommand) checkLostKey(withKey bool) error {
	switch {
	case !c.LostKey:
		return nil
	case withKey:
		return engine.InvalidField("--lost-key", "is not needed", "the backup has the key: leave --lost-key out")
	case c.KeepTokens:
		return engine.InvalidField("--keep-tokens", "cannot be done with --lost-key",
			"API tokens are checked with a key that is sealed under the lost one: make new ones")
	}
	return nil
}

// giveUpKey has the restored store go on without what is sealed under keys that are not here.
func (c *RestoreCommand) giveUpKey(e *terminal.Env) error {
	rotate := KeysRotateCommand{LostKey: true, Wait: time.Minute, StoreFlags: c.StoreFlags}
	if err := rotate.Run(e); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Stdout, "The lost key is given up: "+lostKeyCost)
	return err
}

// restore fills the control store and the record, and says what it has done.
func (c *RestoreCommand) restore(e *terminal.Env, b *backup.Backup, dir string) error {
	url, err := c.URL()
	if err != nil {
		return err
	}
	url, done, err := controlURL(e.Ctx, url, dir, true, e.Log)
	if err != nil {
		return err
	}
	defer done()
	var to backup.PartWriter
	if len(b.Files) > 0 {
		record, done, err := c.OpenRecord(e.Ctx, dir, e.Log)
		if err != nil {
			return err
		}
		defer done()
		to = record
	}
	if err := b.Restore(e.Ctx, url,
		backup.RestoreOptions{Parts: to, Replace: c.Replace, KeepTokens: c.KeepTokens}); err != nil {
		return err
	}
	if file := filepath.Join(dir, keyFileName); b.Key != nil && missingParts(file) {
		if err := os.WriteFile(file, b.Key, 0o600); err != nil {
			return fmt.Errorf("writing the key: %w", err)
		}
	}
	_, _ = fmt.Fprintf(
		e.Stdout,
		"Restored %s of %s: %s.\n",
		c.File,
		b.CreatedAt.Format(time.RFC3339),
		backupSummary(b.Manifest),
	)
	_, _ = fmt.Fprintln(e.Stdout, voidedSummary(b.Voided, c.KeepTokens))
	if n := len(b.Stopped); n > 0 {
		_, _ = fmt.Fprintf(e.Stderr, "Left stopped, %d of the continuous queries: %s. DROP those that are still wanted, and "+
			"CREATE them again (SHOW QUERIES has their statements).\n", n, strings.Join(b.Stopped, ", "))
	}
	return nil
}

// voidedSummary says whose credentials a restore has ended, and how to go on.
func voidedSummary(v backup.Voided, keptTokens bool) string {
	programs := plural(v.Tokens, "API token", "API tokens")
	if keptTokens {
		programs = "none of the API tokens (--keep-tokens)"
	}
	text := "Void: " + strings.Join([]string{
		plural(v.Sessions, "session", "sessions"),
		plural(v.SignInLinks, "sign-in link", "sign-in links"),
		plural(v.Invitations, "invitation", "invitations"),
		programs,
		plural(v.ShareLinks, "link to a report", "links to reports"),
		plural(v.JoinTokens, "join token of nodes", "join tokens of nodes"),
	}, ", ") + "."
	if v.LockedUsers > 0 || v.RevokedCertificates > 0 {
		text += fmt.Sprintf("\nLocked out or deleted in the replaced store, and locked now: %s. Revoked there: %s.",
			plural(v.LockedUsers, "user", "users"),
			plural(v.RevokedCertificates, "certificate of a node", "certificates of nodes"))
	}
	if v.Uncompared {
		text += "\nThe replaced store had none of these users, so Loadstone does not know which users were locked and " +
			"which nodes were revoked after the backup was made. Lock those users again. A revoked node is accepted " +
			"again until its certificate expires: `loadstone node revoke NAME`; one that joined later is not in the " +
			"backup, and is kept out by a new authority alone (docs/operate/security.md)."
	}
	if v.NoAdmin {
		return text + "\nNo admin may sign in: all of them are locked. Start the server on this machine, and call " +
			"`loadstone signin` beside it: its link signs in as a new admin, who can let others in."
	}
	return text + "\nSign in with a password, or with the link of `loadstone signin` when the server runs."
}

// holdsKeys reports whether a key file has all keys of another: after a rotation it has those of before as further
// lines.
func holdsKeys(there, given []byte) bool {
	have, err := keyring.FileIDs(there)
	if err != nil {
		return bytes.Equal(there, given)
	}
	want, err := keyring.FileIDs(given)
	return err == nil && !slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(have, id) })
}

// key compares the key of a backup with that of the data directory; sealed tells that there is none.
func (c *RestoreCommand) key(given []byte, dir string) (sealed bool, err error) {
	there, err := os.ReadFile(filepath.Join(dir, keyFileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return given == nil && os.Getenv("LOADSTONE_KEY") == "", nil
	case err != nil:
		return false, fmt.Errorf("reading the key: %w", err)
	case given != nil && !holdsKeys(there, given):
		return false, &engine.Error{Code: engine.CodeConflict, Message: "The data directory " + dir + " has another key.",
			Hint: "Restore into another --data-dir, or move its " + keyFileName + " away."}
	}
	return false, nil
}
