package backup_test

import (
	"crypto/sha256"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/backup"
)

// credential is something that lets somebody in.
type credential struct{ kind, secret string }

func (c credential) hash() [32]byte { return sha256.Sum256([]byte(c.secret)) }

var credentials = []credential{{"api", "a"}, {"session", "b"}, {"signin", "c"}, {"invite", "d"}}

// TestARestoreBringsNobodyBack: what was signed out, used, revoked, locked or deleted after a backup was made works
// no more after it was restored.
func TestARestoreBringsNobodyBack(t *testing.T) {
	for name, keep := range map[string]bool{"tokens void": false, "tokens kept": true} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			at := filledPlace(t)
			s := open(t, at.dsn, at.key)
			admin, err := s.EnsureAdmin(ctx, "root")
			must(t, err)
			ada, err := s.CreateUser(ctx, "ada", store.RoleOperator)
			must(t, err)
			gone, err := s.CreateUser(ctx, "gone", store.RoleAdmin)
			must(t, err)
			locked, err := s.CreateUser(ctx, "locked", store.RoleOperator)
			must(t, err)
			yes := true
			_, _, err = s.ChangeUser(ctx, locked.UserID, store.UserChange{Disabled: &yes})
			must(t, err)
			expires := engine.At(time.Now().Add(time.Hour))
			for _, c := range credentials {
				_, err := s.CreateToken(ctx, store.Token{UserID: gone.UserID, Kind: c.kind, ExpiresAt: expires}, c.hash())
				must(t, err)
			}
			_, err = s.CreateToken(ctx, store.Token{UserID: admin.UserID, Kind: "api", ExpiresAt: expires},
				credential{secret: "root"}.hash())
			must(t, err)
			share := sha256.Sum256([]byte("share"))
			_, err = s.CreateShare(ctx, store.Share{RunID: "r1", CreatedBy: "gone", ExpiresAt: expires}, share)
			must(t, err)
			_, err = s.CreateNodeToken(ctx, store.NodeToken{TokenID: "n", Uses: 1}, sha256.Sum256([]byte("join")), time.Hour)
			must(t, err)
			joining := store.NodeCertificate{Serial: "1", NodeID: "node", ExpiresAt: expires.Time}
			must(t, s.AdmitNode(ctx, joining, sha256.Sum256([]byte("join"))))
			path := filepath.Join(t.TempDir(), "b")
			write(t, at.dsn, path, backup.Options{})

			// The backup knows nothing of this.
			_, _, err = s.ChangeUser(ctx, ada.UserID, store.UserChange{Disabled: &yes})
			must(t, err)
			must(t, s.DeleteUser(ctx, gone.UserID, store.ExpectedUser{}))
			err = s.RevokeNode(ctx, "node", "root")
			must(t, err)
			_, err = s.CreateNodeToken(ctx, store.NodeToken{TokenID: "m", Uses: 2}, sha256.Sum256([]byte("later")), time.Hour)
			must(t, err)
			for _, id := range []string{"later", "stays"} {
				must(t, s.AdmitNode(ctx, store.NodeCertificate{Serial: id, NodeID: id, ExpiresAt: expires.Time},
					sha256.Sum256([]byte("later"))))
			}
			must(t, s.RevokeNode(ctx, "later", "root"))
			s.Close()

			b, err := backup.Open(path)
			must(t, err)
			defer b.Close()
			must(t, b.Restore(ctx, at.dsn, backup.RestoreOptions{Replace: true, KeepTokens: keep}))
			want := backup.Voided{Sessions: 1, SignInLinks: 1, Invitations: 1, Tokens: 2, ShareLinks: 1, JoinTokens: 1,
				LockedUsers: 2, RevokedCertificates: 2}
			if keep {
				want.Tokens = 0
			}
			if b.Voided != want {
				t.Errorf("voided %+v, want %+v", b.Voided, want)
			}
			s = open(t, at.dsn, at.key)
			defer s.Close()
			for _, c := range credentials {
				if _, u, err := s.UseToken(ctx, c.kind, c.hash()); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s of a deleted user lets %q in: %v", c.kind, u.Name, err)
				}
			}
			if _, _, err := s.UseToken(ctx, "api", credential{secret: "root"}.hash()); (err == nil) != keep {
				t.Errorf("the token of the admin, kept %t: %v", keep, err)
			}
			if _, err := s.UseShare(ctx, share); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the link to a report: %v", err)
			}
			joining.Serial, joining.NodeID = "2", "other"
			if err := s.AdmitNode(ctx, joining, sha256.Sum256([]byte("join"))); err == nil {
				t.Error("a node joined by a token of the backup")
			}
			for _, name := range []string{"ada", "gone", "locked"} {
				if _, _, err := s.UserCredentials(ctx, name); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s may sign in: %v", name, err)
				}
			}
			if _, _, err := s.UserCredentials(ctx, "root"); err != nil {
				t.Errorf("the admin may not sign in: %v", err)
			}
			if revoked, err := s.RevokedNodes(ctx); err != nil || len(revoked) != 2 {
				t.Errorf("revoked: %v, %v", revoked, err)
			}
			// A node that the backup does not know can still be revoked.
			must(t, s.RevokeNode(ctx, "stays", "root"))
		})
	}
}

// TestUsersOfAnotherHistoryAreNotLocked: a store that shares no user with the backup has deleted none of them.
func TestUsersOfAnotherHistoryAreNotLocked(t *testing.T) {
	ctx, from, to := t.Context(), filledPlace(t), filledPlace(t)
	for _, p := range []place{from, to} {
		s := open(t, p.dsn, p.key)
		_, err := s.EnsureAdmin(ctx, "root")
		must(t, err)
		s.Close()
	}
	path := filepath.Join(t.TempDir(), "b")
	write(t, from.dsn, path, backup.Options{})
	b, err := backup.Open(path)
	must(t, err)
	defer b.Close()
	must(t, b.Restore(ctx, to.dsn, backup.RestoreOptions{Replace: true}))
	if b.Voided.LockedUsers != 0 || !b.Voided.Uncompared || b.Voided.NoAdmin {
		t.Errorf("locked %d users: %+v", b.Voided.LockedUsers, b.Voided)
	}
}

// TestALockedAdminIsReplaced: a restore may lock the only admin of the backup. It says so, and who has the machine signs
// in as a new one.
func TestALockedAdminIsReplaced(t *testing.T) {
	ctx, at := t.Context(), filledPlace(t)
	s := open(t, at.dsn, at.key)
	admin, err := s.EnsureAdmin(ctx, "admin")
	must(t, err)
	_, err = s.CreateUser(ctx, "ada", store.RoleOperator)
	must(t, err)
	path := filepath.Join(t.TempDir(), "b")
	write(t, at.dsn, path, backup.Options{})
	_, err = s.CreateUser(ctx, "boss", store.RoleAdmin)
	must(t, err)
	must(t, s.DeleteUser(ctx, admin.UserID, store.ExpectedUser{}))
	s.Close()
	b, err := backup.Open(path)
	must(t, err)
	defer b.Close()
	must(t, b.Restore(ctx, at.dsn, backup.RestoreOptions{Replace: true}))
	if !b.Voided.NoAdmin || b.Voided.Uncompared {
		t.Errorf("%+v", b.Voided)
	}
	s = open(t, at.dsn, at.key)
	defer s.Close()
	if u, err := s.EnsureAdmin(ctx, "admin"); err != nil || u.UserID == admin.UserID || u.Name != "admin-2" {
		t.Errorf("the new admin: %+v, %v", u, err)
	}
}
