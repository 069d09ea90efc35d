package engine

import (
	"fmt"
	"strconv"
	"time"
)

// LeastCost is what a run costs at least, reckoned before its load begins. What is made and loaded before it, other
// clusters than the least, and what is asked after it come on top.
type LeastCost struct {
	Warehouse     string `json:"warehouse"`
	WarehouseType string `json:"warehouse_type"`
	WarehouseSize string `json:"warehouse_size"`
	// Seconds are those that are billed at least: the load with its warm-up, until the warehouse suspends where the run
	// makes it start, and not less than what a start is billed for.
	Seconds  float64 `json:"seconds"`
	Clusters int     `json:"clusters"`
	// Credits are null where the price list has no rate for the warehouse; Note says why.
	Credits   *float64 `json:"credits"`
	Price     *float64 `json:"price"`
	Currency  string   `json:"currency"`
	PriceList string   `json:"price_list"`
	Note      string   `json:"note,omitempty"`
}

// String is a sentence.
func (c LeastCost) String() string {
	if c.Credits == nil || c.Price == nil {
		return "What the run costs is not known beforehand. " + c.Note
	}
	text := fmt.Sprintf("The run costs at least %s credits (%s %s): %s of the warehouse %s",
		strconv.FormatFloat(*c.Credits, 'g', 2, 64), strconv.FormatFloat(*c.Price, 'g', 2, 64), c.Currency,
		time.Duration(c.Seconds*float64(time.Second)).Round(time.Second), c.Warehouse)
	if c.Clusters > 1 {
		text += fmt.Sprintf(" with %d clusters", c.Clusters)
	}
	return text + ". Loading tables, and what is asked after the load, comes on top."
}

// Cost is what the measurement of a run used of a warehouse that is paid by the
// hour, at the prices of the server's price list.
type Cost struct {
	// Warehouse, its type and its size are those that the poller saw last.
	Warehouse     string `json:"warehouse"`
	WarehouseType string `json:"warehouse_type"`
	WarehouseSize string `json:"warehouse_size"`
	// WarehouseGeneration decides the rate of standard warehouses; empty when nobody knows it.
	WarehouseGeneration string `json:"warehouse_generation"`
	// Clusters that were started, in the mean of the measurement.
	Clusters float64 `json:"clusters"`
	// CreditsPerHour of one cluster.
	CreditsPerHour float64 `json:"credits_per_hour"`
	// Credits of the measurement, and of the whole run with its preparation and warm-up.
	Credits    float64 `json:"credits"`
	RunCredits float64 `json:"run_credits"`
	// CreditPrice is the price of one credit in Currency; Price is Credits at it.
	CreditPrice float64 `json:"credit_price"`
	Currency    string  `json:"currency"`
	Price       float64 `json:"price"`
	RunPrice    float64 `json:"run_price"`
	// CausedSeconds is how long the run kept the warehouse up: from its start until the warehouse suspended, with what
	// came after the load, at least what a start is billed for.
	CausedSeconds float64 `json:"caused_seconds"`
	CausedCredits float64 `json:"caused_credits"`
	CausedPrice   float64 `json:"caused_price"`
	// PricePerMillion is Price for each million operations that succeeded; null without one.
	PricePerMillion *float64 `json:"price_per_million_operations"`
	// PriceList says where the prices are from.
	PriceList string `json:"price_list"`
	// Notes are what the figures leave out, in sentences.
	Notes []string `json:"notes"`
}
