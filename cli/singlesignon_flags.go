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
	Issuer      string   `name:"oidc-issuer" env:"LOADSTONE_OIDC_ISSUER" placeholder:"URL" help:"OpenID Connect provider for sign-in. Register PUBLIC-URL/api/auth/oidc/callback as its redirect address."`
	ClientID    string   `name:"oidc-client-id" env:"LOADSTONE_OIDC_CLIENT_ID" placeholder:"ID" help:"Client id of the server at the provider."`
	Secret      string   `name:"oidc-client-secret" env:"LOADSTONE_OIDC_CLIENT_SECRET" placeholder:"TEXT" help:"Client secret. Arguments are visible to other users: prefer the environment or the file."`
	SecretFile  string   `name:"oidc-client-secret-file" env:"LOADSTONE_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with the client secret."`
	Name        string   `name:"oidc-name" env:"LOADSTONE_OIDC_NAME" default:"single sign-on" placeholder:"NAME" help:"Provider name on the sign-in button."`
	RoleMap     []string `name:"oidc-role-map" env:"LOADSTONE_OIDC_ROLE_MAP" sep:";" placeholder:"GROUP=ROLE" help:"Role of a provider group, for example dba=admin; applied at each sign-in. Repeatable; semicolons in the variable."`
	DefaultRole string   `name:"oidc-default-role" env:"LOADSTONE_OIDC_DEFAULT_ROLE" placeholder:"ROLE" help:"Role of users without a mapped group; without it they are rejected."`
	GroupsClaim string   `name:"oidc-groups-claim" env:"LOADSTONE_OIDC_GROUPS_CLAIM" default:"groups" placeholder:"CLAIM" help:"Claim that lists the groups."`
	Scopes      []string `name:"oidc-scopes" env:"LOADSTONE_OIDC_SCOPES" default:"profile,email" placeholder:"SCOPE,…" help:"Extra OIDC scopes; some providers need groups here."`
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
