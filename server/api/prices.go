// This part holds the handlers of the price list that costs are reckoned with.

package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/cost"
)

const (
	pricePath = "/api/v1/prices"
	priceTag  = "Server"
)

// PriceList is the price list in use.
type PriceList struct {
	Text        string           `json:"text" doc:"The list, YAML."`
	BuiltIn     string           `json:"built_in" doc:"The list that comes with Loadstone."`
	From        cost.Origin      `json:"from" enum:"flag,saved,file,built_in" doc:"flag is the file that --prices names, saved what was saved here, file prices.yaml of the data directory."`
	File        string           `json:"file" doc:"Its path on the server; empty of one that is in no file."`
	Version     int64            `json:"version" doc:"Of what was saved, 0 before anything was."`
	UpdatedBy   string           `json:"updated_by"`
	UpdatedAt   *engine.Time     `json:"updated_at"`
	Problem     string           `json:"problem" doc:"Why what was saved is not used; empty where nothing is wrong."`
	Currency    string           `json:"currency"`
	CreditPrice float64          `json:"credit_price" doc:"Of one credit, in the currency."`
	Warehouses  []WarehousePrice `json:"warehouses" nullable:"false"`
}

// WarehousePrice is what a warehouse of a type and size takes.
type WarehousePrice struct {
	Type           string  `json:"warehouse_type"`
	Size           string  `json:"warehouse_size"`
	CreditsPerHour float64 `json:"credits_per_hour" doc:"Of one cluster."`
	MinimumSeconds float64 `json:"minimum_seconds" doc:"What each start is billed for at least."`
}

// GivenPrices is a price list as an admin writes it.
type GivenPrices struct {
	Text    string `json:"text" maxLength:"65536" doc:"YAML; an empty text takes what was saved away."`
	Version int64  `json:"version" minimum:"0" maximum:"9007199254740991" doc:"That which was edited; 0 before anything was saved."`
}

type priceBody[T any] struct{ Body T }

// RegisterPrices adds the routes.
func RegisterPrices(a *API, s *cost.Source) {
	read := NewOperation(
		http.MethodGet,
		pricePath,
		"get-prices",
		priceTag,
		"Read the price list that costs are reckoned with",
	)
	Handle(a, read, func(ctx context.Context, _ *struct{}) (*priceBody[PriceList], error) {
		return &priceBody[PriceList]{priceListOf(s.Current(ctx))}, nil
	})
	save := NewOperation(
		http.MethodPut,
		pricePath,
		"save-prices",
		priceTag,
		"Save the price list for all servers (admins)",
		http.StatusForbidden,
		http.StatusConflict,
	)
	save.Description = "Costs that are shown or taken into tables from now on follow it; wrong fields are named with " +
		"their lines."
	Handle(a, save, func(ctx context.Context, in *struct{ Body GivenPrices }) (*priceBody[PriceList], error) {
		if err := a.Admin(ctx, "change prices"); err != nil {
			return nil, err
		}
		l, err := s.Save(ctx, in.Body.Text, in.Body.Version, a.Caller(ctx))
		if err != nil {
			return nil, err
		}
		message := "what was saved is taken away"
		if l.From == cost.FromSaved {
			message = fmt.Sprintf("a credit costs %g %s", l.Prices.CreditPrice, l.Prices.Currency)
		}
		a.Audit(ctx, "prices.save", pricePath, message)
		return &priceBody[PriceList]{priceListOf(l)}, nil
	})
}

func priceListOf(l cost.List) PriceList {
	out := PriceList{Text: l.Text, BuiltIn: string(cost.Embedded()), From: l.From, File: l.File, Version: l.Version,
		UpdatedBy: l.UpdatedBy, Problem: l.Problem, Currency: l.Prices.Currency, CreditPrice: l.Prices.CreditPrice,
		Warehouses: []WarehousePrice{}}
	if !l.UpdatedAt.IsZero() {
		out.UpdatedAt = &l.UpdatedAt
	}
	for _, r := range l.Prices.Rates() {
		out.Warehouses = append(out.Warehouses, WarehousePrice{Type: r.Type, Size: r.Size, CreditsPerHour: r.CreditsPerHour,
			MinimumSeconds: r.MinimumSeconds})
	}
	return out
}
