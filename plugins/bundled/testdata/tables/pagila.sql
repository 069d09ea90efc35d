-- Pagila, the Postgres form of Sakila: sequences, domains, an enumeration, arrays, tsvector, triggers, partitions.
CREATE DOMAIN year AS integer CONSTRAINT year_check CHECK (VALUE >= 1901 AND VALUE <= 2155);
CREATE TYPE mpaa_rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17');
CREATE FUNCTION last_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.last_update = CURRENT_TIMESTAMP; RETURN NEW; END $$;

--= actor DELETE=film_actor
CREATE TABLE actor (actor_id serial PRIMARY KEY, first_name varchar(45) NOT NULL, last_name varchar(45) NOT NULL,
  last_update timestamp NOT NULL DEFAULT now());
CREATE TRIGGER last_updated BEFORE UPDATE ON actor FOR EACH ROW EXECUTE FUNCTION last_updated();
INSERT INTO actor (first_name, last_name) SELECT 'f', 'l' || g FROM generate_series(1, 200) g;

--= category DELETE=film_category
CREATE TABLE category (category_id serial PRIMARY KEY, name varchar(25) NOT NULL, last_update timestamp NOT NULL DEFAULT now());
INSERT INTO category (name) SELECT 'c' || g FROM generate_series(1, 16) g;

--= country DELETE=city
CREATE TABLE country (country_id serial PRIMARY KEY, country varchar(50) NOT NULL, last_update timestamp NOT NULL DEFAULT now());
INSERT INTO country (country) SELECT 'c' || g FROM generate_series(1, 109) g;

--= city DELETE=address
CREATE TABLE city (city_id serial PRIMARY KEY, city varchar(50) NOT NULL, country_id int NOT NULL REFERENCES country ON UPDATE CASCADE
  ON DELETE RESTRICT, last_update timestamp NOT NULL DEFAULT now());
INSERT INTO city (city, country_id) SELECT 'c' || g, 1 + g % 109 FROM generate_series(1, 300) g;

--= address DELETE=staff
CREATE TABLE address (address_id serial PRIMARY KEY, address varchar(50) NOT NULL, address2 varchar(50), district varchar(20) NOT NULL,
  city_id int NOT NULL REFERENCES city ON UPDATE CASCADE ON DELETE RESTRICT, postal_code varchar(10), phone varchar(20) NOT NULL,
  last_update timestamp NOT NULL DEFAULT now());
INSERT INTO address (address, district, city_id, phone) SELECT 'a', 'd', g, '1' FROM generate_series(1, 300) g;

--= language DELETE=film
CREATE TABLE language (language_id serial PRIMARY KEY, name character(20) NOT NULL, last_update timestamp NOT NULL DEFAULT now());
INSERT INTO language (name) SELECT 'l' || g FROM generate_series(1, 6) g;

--= film DELETE=inventory
CREATE TABLE film (film_id serial PRIMARY KEY, title varchar(255) NOT NULL, description text, release_year year,
  language_id int NOT NULL REFERENCES language ON UPDATE CASCADE ON DELETE RESTRICT,
  original_language_id int REFERENCES language ON UPDATE CASCADE ON DELETE RESTRICT, rental_duration smallint NOT NULL DEFAULT 3,
  rental_rate numeric(4,2) NOT NULL DEFAULT 4.99, length smallint, replacement_cost numeric(5,2) NOT NULL DEFAULT 19.99,
  rating mpaa_rating DEFAULT 'G', last_update timestamp NOT NULL DEFAULT now(), special_features text[], fulltext tsvector NOT NULL);
CREATE TRIGGER film_fulltext_trigger BEFORE INSERT OR UPDATE ON film FOR EACH ROW
  EXECUTE FUNCTION tsvector_update_trigger('fulltext', 'pg_catalog.english', 'title', 'description');
CREATE TRIGGER last_updated BEFORE UPDATE ON film FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE INDEX film_fulltext_idx ON film USING gist (fulltext);
INSERT INTO film (title, description, release_year, language_id, length, special_features)
  SELECT 't' || g, 'd', 2006, 1 + g % 6, 90, ARRAY['Trailers'] FROM generate_series(1, 300) g;

--= film_actor
CREATE TABLE film_actor (actor_id int NOT NULL REFERENCES actor ON DELETE RESTRICT, film_id int NOT NULL REFERENCES film
  ON DELETE RESTRICT, last_update timestamp NOT NULL DEFAULT now(), PRIMARY KEY (actor_id, film_id));
INSERT INTO film_actor SELECT 1 + g % 200, g FROM generate_series(1, 300) g;

--= film_category
CREATE TABLE film_category (film_id int NOT NULL REFERENCES film ON DELETE RESTRICT, category_id int NOT NULL REFERENCES category
  ON DELETE RESTRICT, last_update timestamp NOT NULL DEFAULT now(), PRIMARY KEY (film_id, category_id));
INSERT INTO film_category SELECT g, 1 + g % 16 FROM generate_series(1, 300) g;

--= store INSERT=manager_staff_id DELETE=customer
CREATE TABLE staff (staff_id serial PRIMARY KEY, first_name varchar(45) NOT NULL, last_name varchar(45) NOT NULL,
  address_id int NOT NULL REFERENCES address ON DELETE RESTRICT, email varchar(50), store_id int NOT NULL, active boolean NOT NULL DEFAULT true,
  username varchar(16) NOT NULL, password varchar(40), last_update timestamp NOT NULL DEFAULT now(), picture bytea);
INSERT INTO staff (first_name, last_name, address_id, store_id, username) SELECT 'f', 'l', g, g, 'u' FROM generate_series(1, 20) g;
CREATE TABLE store (store_id serial PRIMARY KEY, manager_staff_id int NOT NULL REFERENCES staff ON DELETE RESTRICT,
  address_id int NOT NULL REFERENCES address ON DELETE RESTRICT, last_update timestamp NOT NULL DEFAULT now());
CREATE UNIQUE INDEX idx_unq_manager_staff_id ON store (manager_staff_id);
INSERT INTO store (manager_staff_id, address_id) SELECT g, g FROM generate_series(1, 20) g;
ALTER TABLE staff ADD CONSTRAINT staff_store_id_fkey FOREIGN KEY (store_id) REFERENCES store;

--= staff DELETE=store
--= customer DELETE=rental
CREATE TABLE customer (customer_id serial PRIMARY KEY, store_id int NOT NULL REFERENCES store ON DELETE RESTRICT,
  first_name varchar(45) NOT NULL, last_name varchar(45) NOT NULL, email varchar(50), address_id int NOT NULL REFERENCES address
  ON DELETE RESTRICT, activebool boolean NOT NULL DEFAULT true, create_date date NOT NULL DEFAULT ('now'::text)::date,
  last_update timestamp DEFAULT now(), active int);
INSERT INTO customer (store_id, first_name, last_name, address_id, active)
  SELECT 1 + g % 20, 'f', 'l', g, 1 FROM generate_series(1, 300) g;

--= inventory DELETE=rental
CREATE TABLE inventory (inventory_id serial PRIMARY KEY, film_id int NOT NULL REFERENCES film ON DELETE RESTRICT,
  store_id int NOT NULL REFERENCES store ON DELETE RESTRICT, last_update timestamp NOT NULL DEFAULT now());
INSERT INTO inventory (film_id, store_id) SELECT g, 1 + g % 20 FROM generate_series(1, 300) g;

--= rental
CREATE TABLE rental (rental_id serial PRIMARY KEY, rental_date timestamp NOT NULL, inventory_id int NOT NULL REFERENCES inventory
  ON DELETE RESTRICT, customer_id int NOT NULL REFERENCES customer ON DELETE RESTRICT, return_date timestamp,
  staff_id int NOT NULL REFERENCES staff ON DELETE RESTRICT, last_update timestamp NOT NULL DEFAULT now());
CREATE UNIQUE INDEX idx_unq_rental ON rental (rental_date, inventory_id, customer_id);
INSERT INTO rental (rental_date, inventory_id, customer_id, staff_id)
  SELECT '2022-01-01'::timestamp + g * interval '1 h', g, g, 1 + g % 20 FROM generate_series(1, 300) g;

--= payment
CREATE TABLE payment (payment_id serial NOT NULL, customer_id int NOT NULL REFERENCES customer, staff_id int NOT NULL REFERENCES staff,
  rental_id int NOT NULL, amount numeric(5,2) NOT NULL, payment_date timestamptz NOT NULL, PRIMARY KEY (payment_date, payment_id))
  PARTITION BY RANGE (payment_date);
CREATE TABLE payment_p2022_01 PARTITION OF payment FOR VALUES FROM ('2022-01-01') TO ('2022-02-01');
CREATE TABLE payment_p2022_02 PARTITION OF payment FOR VALUES FROM ('2022-02-01') TO ('2022-03-01');
INSERT INTO payment (customer_id, staff_id, rental_id, amount, payment_date)
  SELECT g, 1 + g % 20, g, 2.99, '2022-01-01'::timestamptz + (g % 55) * interval '1 day' FROM generate_series(1, 300) g;
