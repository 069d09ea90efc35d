package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/keyring"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
)

// KeysCommand is loadstone keys.
type KeysCommand struct {
	Status KeysStatusCommand `cmd:"" help:"List the keys, the servers that have them, and what each seals."`
	Rotate KeysRotateCommand `cmd:"" help:"Seal all secrets under a new key while servers run."`
}

// KeysStatusCommand is loadstone keys status.
type KeysStatusCommand struct{ wiring.StoreFlags }

// KeysRotateCommand is loadstone keys rotate.
type KeysRotateCommand struct {
	DryRun  bool          `help:"Show what would be done, and change nothing."`
	LostKey bool          `help:"Continue without the secrets whose key is lost; they have to be entered again."`
	Wait    time.Duration `default:"1m" help:"How long to wait for the servers to have the new key."`
	wiring.StoreFlags
}

// Help is shown by --help.
func (*KeysRotateCommand) Help() string {
	return `Servers go on meanwhile: they open secrets under both keys. It goes on where it was when it is called again, also
after a crash. With a key file (loadstone.key in the data directory) it makes the new key, and the server beside it
reads the file by itself; servers on other machines need a copy of the file. With LOADSTONE_KEY set, restart the
servers with the new key in LOADSTONE_KEY and the present one in LOADSTONE_KEY_PREVIOUS, one after the other, and call
it with the same two. Tokens, sessions and links stay good. Backups made before need the earlier key: keep it with them.`
}

// openKeys opens the keys of a data directory, by open, and the control store beside them.
func openKeys(
	e *terminal.Env,
	flags wiring.StoreFlags,
	open func(path string) (*keyring.Keyring, error),
) (s *storagepostgres.Store, keys *keyring.Keyring, done func(),
	err error) {
	url, err := flags.URL()
	if err != nil {
		return nil, nil, nil, err
	}
	dir, err := wiring.MakeDataDir(cmp.Or(flags.DataDir, wiring.DefaultDataDir()))
	if err != nil {
		return nil, nil, nil, err
	}
	if keys, err = open(filepath.Join(dir, keyring.FileName)); err != nil {
		return nil, nil, nil, err
	}
	url, release, err := controlURL(e.Ctx, url, dir, false, e.Log)
	if err != nil {
		return nil, nil, nil, err
	}
	if s, err = storagepostgres.OpenUnproved(e.Ctx, url, keys); err != nil {
		release()
		return nil, nil, nil, err
	}
	return s, keys, func() { s.Close(); release() }, nil
}

// Run says which keys there are.
func (c *KeysStatusCommand) Run(e *terminal.Env) error {
	s, keys, done, err := openKeys(e, c.StoreFlags, keyring.OpenExisting)
	if err != nil {
		return err
	}
	defer done()
	_, err = describeKeys(e, s, keys)
	return err
}

func describeKeys(
	e *terminal.Env,
	s *storagepostgres.Store,
	keys *keyring.Keyring,
) (counts []storagepostgres.SealedCount,
	err error) {
	r, err := s.KeyRotation(e.Ctx)
	if err != nil {
		return nil, err
	}
	servers, err := s.KeyServers(e.Ctx)
	if err != nil {
		return nil, err
	}
	if counts, err = s.CountSealed(e.Ctx); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(
		e.Stdout,
		"Key that seals: %s. Keys in %s: %s.\n",
		cmp.Or(r.Sealing, "none yet"),
		cmp.Or(keys.Path(), keyring.KeyEnv),
		strings.Join(keys.IDs(), ", "),
	)
	switch {
	case r.Next != "":
		_, _ = fmt.Fprintf(e.Stdout, "A rotation to the key %s is under way, since %s.\n", r.Next,
			r.StartedAt.Format(time.RFC3339))
	case !r.FinishedAt.IsZero():
		_, _ = fmt.Fprintf(e.Stdout, "The last rotation ended at %s.\n", r.FinishedAt.Format(time.RFC3339))
	}
	for _, id := range r.Retired {
		if keys.Has(id) {
			_, _ = fmt.Fprintf(e.Stdout, "The key %s is retired: nothing is sealed under it, and nothing can be. It may be "+
				"taken out of %s; backups of before need it.\n", id, cmp.Or(keys.Path(), keyring.PreviousKeyEnv))
		}
	}
	for _, o := range servers {
		_, _ = fmt.Fprintf(e.Stdout, "Server %s seals under %s and has %s.\n", o.Server, o.Keys[0],
			strings.Join(o.Keys, ", "))
	}
	for _, n := range counts {
		missing := ""
		if !slices.Contains(keys.IDs(), n.Key) {
			missing = ", which is not here"
		}
		_, _ = fmt.Fprintf(e.Stdout, "%6d sealed under %s%s: %s\n", n.Count, n.Key, missing, n.Place)
	}
	return counts, nil
}

// Run seals all secrets under a new key.
func (c *KeysRotateCommand) Run(e *terminal.Env) error {
	open := keyring.OpenExisting
	if c.LostKey && !c.DryRun {
		open = keyring.Open // the key that is lost may have been the only one
	}
	s, keys, done, err := openKeys(e, c.StoreFlags, open)
	if err != nil {
		return err
	}
	defer done()
	unlock, err := s.LockKeyRotation(e.Ctx)
	if err != nil {
		return err
	}
	defer unlock()
	counts, err := describeKeys(e, s, keys)
	if err != nil {
		return err
	}
	if lost := s.CheckKeys(counts); lost != nil && !c.LostKey {
		return lost
	}
	if named, err := c.nameKey(e, s, keys); named || err != nil {
		return err
	}
	next, err := c.nextKey(e, s, keys)
	if err != nil || c.DryRun {
		return err
	}
	if err := c.await(e, s, "have the key", func(o storagepostgres.ServerKeys) bool {
		return slices.Contains(o.Keys, next)
	}, "Copy the key file to their data directories, or start them with the new key in "+keyring.KeyEnv+" and the "+
		"present one in "+keyring.PreviousKeyEnv+". Then call this again: it goes on."); err != nil {
		return err
	}
	if err := s.UseNextKey(e.Ctx); err != nil {
		return err
	}
	if err := c.await(e, s, "seal with the key", func(o storagepostgres.ServerKeys) bool { return o.Keys[0] == next },
		"Call this again when they reach the control store: it goes on."); err != nil {
		return err
	}
	if keys.Path() != "" {
		if err := keys.MoveFirst(next); err != nil {
			return err
		}
	}
	if err := c.end(e, s, next); err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		e.Stdout,
		"Done: everything is sealed under %s, and nothing can be sealed under the earlier key any more. Keep that with "+
			"the backups that were made before. When runs that go on now have ended, take it out of %s: nothing in the "+
			"control store needs it.\n",
		next,
		cmp.Or(keys.Path(), keyring.PreviousKeyEnv),
	)
	return err
}

// end seals everything again, and what was written meanwhile once more, until the earlier key is retired.
func (c *KeysRotateCommand) end(e *terminal.Env, s *storagepostgres.Store, next string) error {
	for range maxResealPasses {
		if err := c.reseal(e, s, next); err != nil {
			return err
		}
		if left, err := s.EndKeyRotation(e.Ctx, c.LostKey); err != nil || left == 0 || c.LostKey {
			return err
		}
	}
	return writtenAgain(next)
}

// writtenAgain is the error about secrets that come back under the earlier key.
func writtenAgain(next string) error {
	return &engine.Error{Code: engine.CodeConflict,
		Message: "Secrets under the earlier key are written again and again.",
		Hint:    "Look at `loadstone keys status` for a server that does not seal under " + next + ", and call this again."}
}

// nameKey names the key that seals where no server has done so yet. Where all that is sealed is given up, that is all
// there is to do.
func (c *KeysRotateCommand) nameKey(e *terminal.Env, s *storagepostgres.Store, keys *keyring.Keyring) (done bool,
	err error) {
	r, err := s.KeyRotation(e.Ctx)
	if err != nil || r.Sealing != "" {
		return false, err
	}
	if c.DryRun {
		_, err := fmt.Fprintf(e.Stdout, "No server has named the key that seals: it would be %s.\n", keys.FirstID())
		return true, err
	}
	sealing, err := s.NameSealingKey(e.Ctx)
	if err != nil || !c.LostKey {
		return false, err
	}
	_, err = fmt.Fprintf(e.Stdout, "The key %s seals from now on. What is sealed under others has to be entered again.\n",
		sealing)
	return true, err
}

// nextKey is the key that is to seal: that of a rotation that is under way, or a new one.
func (c *KeysRotateCommand) nextKey(e *terminal.Env, s *storagepostgres.Store, keys *keyring.Keyring) (string, error) {
	r, err := s.KeyRotation(e.Ctx)
	if err != nil {
		return "", err
	}
	if c.LostKey && !c.DryRun && r.Next != "" && !keys.Has(r.Next) {
		if err := s.AbandonKeyRotation(e.Ctx); err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(e.Stdout, "The rotation to the key %s, which is lost, is given up.\n", r.Next)
		r.Next = ""
	}
	switch {
	case r.Next != "" && !slices.Contains(keys.IDs(), r.Next):
		return "", &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("A rotation to the key %s is under way, and that key is not in %s.", r.Next,
				cmp.Or(keys.Path(), keyring.KeyEnv)),
			Hint: "Call this with the key file, or the environment, that it was begun with. Where the key is lost for good: " +
				"--lost-key."}
	case r.Next != "":
		_, err := fmt.Fprintf(e.Stdout, "Going on with the rotation to the key %s.\n", r.Next)
		return r.Next, err
	case keys.Path() == "" && keys.FirstID() == r.Sealing:
		return "", &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("%s begins with the key %s, which seals already.", keyring.KeyEnv, r.Sealing),
			Hint: "Set " + keyring.KeyEnv + " to a new key (openssl rand -base64 32) and " + keyring.PreviousKeyEnv +
				" to the present one, here and for all servers."}
	case c.DryRun && keys.Path() != "":
		_, err := fmt.Fprintf(e.Stdout, "A new key would be added to %s, and all of this sealed under it.\n", keys.Path())
		return "", err
	case c.DryRun:
		_, err := fmt.Fprintf(e.Stdout, "All of this would be sealed under the key %s.\n", keys.FirstID())
		return "", err
	}
	next := keys.FirstID()
	if keys.Path() != "" && keys.Has(r.Sealing) {
		// The store keeps the name of the key before anything else happens with it.
		if next, err = keys.AddKey(); err != nil {
			return "", err
		}
	}
	if err := s.BeginKeyRotation(e.Ctx, next); err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(e.Stdout, "Rotating from the key %s to %s.\n", r.Sealing, next)
	return next, err
}

// await waits until a condition holds for all servers that live.
func (c *KeysRotateCommand) await(e *terminal.Env, s *storagepostgres.Store, what string,
	holds func(storagepostgres.ServerKeys) bool, hint string) error {
	ctx, cancel := context.WithTimeout(e.Ctx, c.Wait)
	defer cancel()
	told := ""
	for {
		servers, err := s.KeyServers(e.Ctx)
		if err != nil {
			return err
		}
		var lacking []string
		for _, o := range servers {
			if !holds(o) {
				lacking = append(lacking, o.Server)
			}
		}
		names := strings.Join(lacking, ", ")
		if len(lacking) == 0 {
			return nil
		}
		if names != told {
			_, _ = fmt.Fprintf(e.Stderr, "waiting for servers to %s: %s\n", what, names)
			told = names
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			if err := e.Ctx.Err(); err != nil {
				return fmt.Errorf("waiting for servers: %w", err)
			}
			return &engine.Error{Code: engine.CodeConflict,
				Message: fmt.Sprintf("Servers do not %s after %s: %s.", what, c.Wait, names), Hint: hint}
		}
	}
}

// resealPause is what a document that was being copied when its secret was sealed again needs to be stored.
const resealPause = 2 * time.Second

// maxResealPasses bounds how often everything is looked at: each pass finds what was written during the one before.
const maxResealPasses = 20

// reseal seals everything again, until there is nothing left: what was read before and is written afterwards, such as a
// run made of a template, brings texts of before.
func (c *KeysRotateCommand) reseal(e *terminal.Env, s *storagepostgres.Store, next string) error {
	told := time.Now()
	progress := func(r storagepostgres.Resealed) {
		if time.Since(told) >= time.Second {
			_, _ = fmt.Fprintf(e.Stderr, "%s: %d sealed again\n", r.Place, r.Done)
			told = time.Now()
		}
	}
	for range maxResealPasses {
		all, err := s.Reseal(e.Ctx, progress)
		if err != nil {
			return err
		}
		moved, stuck := 0, []string{}
		for _, r := range all {
			if moved += r.Done + r.Changed; r.Done > 0 {
				_, _ = fmt.Fprintf(e.Stdout, "%6d sealed again: %s\n", r.Done, r.Place)
			}
			if len(r.Failed) > 0 {
				shown := r.Failed[:min(len(r.Failed), maxStuckShown)]
				stuck = append(stuck, fmt.Sprintf("%d of %s (%s)", len(r.Failed), r.Place, strings.Join(shown, ", ")))
			}
		}
		if moved == 0 {
			return c.finished(e, stuck)
		}
		select {
		case <-time.After(resealPause):
		case <-e.Ctx.Done():
			return fmt.Errorf("sealing again: %w", e.Ctx.Err())
		}
	}
	return writtenAgain(next)
}

// maxStuckShown is how many of the rows that do not open are named.
const maxStuckShown = 5

// finished says what does not open, which is an error unless its key is lost.
func (c *KeysRotateCommand) finished(e *terminal.Env, stuck []string) error {
	switch {
	case len(stuck) == 0:
		return nil
	case c.LostKey:
		_, _ = fmt.Fprintf(e.Stderr, "does not open, and has to be entered again: %s\n", strings.Join(stuck, "; "))
		return nil
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: "Some secrets do not open: " + strings.Join(stuck, "; ") + ".",
		Hint: "They are damaged, or their key is not here. Enter them again, or go on without them: --lost-key."}
}
