// This part has the flags of loadstone serve that say which provider signs users in.

package cli

import (
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/oidc"
)

// OIDCFlags say which provider signs users in.
type OIDCFlags struct {
	Issuer      string   `name:"oidc-issuer" env:"LOADSTONE_OIDC_ISSUER" placeholder:"URL" help:"Let users sign in by this OpenID Connect provider. Its redirect address is PUBLIC-URL/api/auth/oidc/callback."`
	ClientID    string   `name:"oidc-client-id" env:"LOADSTONE_OIDC_CLIENT_ID" placeholder:"ID" help:"As what the server is registered there."`
	Secret      string   `name:"oidc-client-secret" env:"LOADSTONE_OIDC_CLIENT_SECRET" placeholder:"TEXT" help:"Its secret there, if it has one. Other users of the machine see arguments: use the variable or the file."`
	SecretFile  string   `name:"oidc-client-secret-file" env:"LOADSTONE_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"The same, in a file."`
	Name        string   `name:"oidc-name" env:"LOADSTONE_OIDC_NAME" default:"single sign-on" placeholder:"NAME" help:"What the button says: Sign in with NAME."`
	RoleMap     []string `name:"oidc-role-map" env:"LOADSTONE_OIDC_ROLE_MAP" sep:";" placeholder:"GROUP=ROLE" help:"Which role a group of the provider's has: dba=admin. May be repeated; in the variable, separated by semicolons. It holds anew at each sign-in."`
	DefaultRole string   `name:"oidc-default-role" env:"LOADSTONE_OIDC_DEFAULT_ROLE" placeholder:"ROLE" help:"The role of who is in none of these groups. Without it nobody else is let in."`
	GroupsClaim string   `name:"oidc-groups-claim" env:"LOADSTONE_OIDC_GROUPS_CLAIM" default:"groups" placeholder:"CLAIM" help:"Where the provider says the groups."`
	Scopes      []string `name:"oidc-scopes" env:"LOADSTONE_OIDC_SCOPES" default:"profile,email" placeholder:"SCOPE,…" help:"What is asked for beside openid; some providers want groups here."`
}

// Options are what a server is given; nil without a provider.
func (f *OIDCFlags) Options() (*oidc.Options, error) {
	if f.Issuer == "" {
		if f.ClientID != "" || len(f.RoleMap) > 0 {
			return nil, engine.InvalidField("--oidc-issuer", "is not given", "the address of the provider")
		}
		return nil, nil
	}
	o := oidc.Options{Issuer: f.Issuer, ClientID: f.ClientID, Name: f.Name,
		DefaultRole: store.Role(f.DefaultRole), GroupsClaim: f.GroupsClaim, Scopes: f.Scopes, Roles: map[string]store.Role{}}
	text, err := terminal.SecretFlag("--oidc-client-secret", f.Secret, f.SecretFile)
	if err != nil {
		return nil, err
	}
	o.ClientSecret = secret.New(text)
	for _, pair := range f.RoleMap {
		i := strings.LastIndex(pair, "=")
		if i < 1 {
			return nil, engine.InvalidField("--oidc-role-map", "is not GROUP=ROLE", "for example dba=admin")
		}
		o.Roles[pair[:i]] = store.Role(pair[i+1:])
	}
	return &o, o.Check()
}
