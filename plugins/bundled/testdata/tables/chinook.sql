-- Chinook, a music shop.

--= artist DELETE=album
CREATE TABLE artist (artist_id int NOT NULL PRIMARY KEY, name varchar(120));
INSERT INTO artist SELECT g, 'a' || g FROM generate_series(1, 275) g;

--= album DELETE=track
CREATE TABLE album (album_id int NOT NULL PRIMARY KEY, title varchar(160) NOT NULL, artist_id int NOT NULL REFERENCES artist);
INSERT INTO album SELECT g, 't' || g, 1 + g % 275 FROM generate_series(1, 347) g;

--= genre DELETE=track
CREATE TABLE genre (genre_id int NOT NULL PRIMARY KEY, name varchar(120));
INSERT INTO genre SELECT g, 'g' || g FROM generate_series(1, 25) g;

--= media_type DELETE=track
CREATE TABLE media_type (media_type_id int NOT NULL PRIMARY KEY, name varchar(120));
INSERT INTO media_type SELECT g, 'm' || g FROM generate_series(1, 5) g;

--= track DELETE=playlist_track
CREATE TABLE track (track_id int NOT NULL PRIMARY KEY, name varchar(200) NOT NULL, album_id int REFERENCES album,
  media_type_id int NOT NULL REFERENCES media_type, genre_id int REFERENCES genre, composer varchar(220), milliseconds int NOT NULL,
  bytes int, unit_price numeric(10,2) NOT NULL);
INSERT INTO track SELECT g, 't' || g, 1 + g % 347, 1 + g % 5, 1 + g % 25, 'c', g, g, 0.99 FROM generate_series(1, 500) g;

--= playlist DELETE=playlist_track
CREATE TABLE playlist (playlist_id int NOT NULL PRIMARY KEY, name varchar(120));
INSERT INTO playlist SELECT g, 'p' || g FROM generate_series(1, 18) g;

--= playlist_track UPDATE=key
CREATE TABLE playlist_track (playlist_id int NOT NULL REFERENCES playlist, track_id int NOT NULL REFERENCES track,
  PRIMARY KEY (playlist_id, track_id));
INSERT INTO playlist_track SELECT 1 + g % 18, g FROM generate_series(1, 500) g;

--= employee DELETE=employee_reports_to_fkey
CREATE TABLE employee (employee_id int NOT NULL PRIMARY KEY, last_name varchar(20) NOT NULL, first_name varchar(20) NOT NULL,
  title varchar(30), reports_to int REFERENCES employee, birth_date timestamp, hire_date timestamp, email varchar(60));
INSERT INTO employee SELECT g, 'l', 'f', 't', nullif(g / 4, 0), now(), now(), 'e' FROM generate_series(1, 8) g;

--= customer DELETE=invoice
CREATE TABLE customer (customer_id int NOT NULL PRIMARY KEY, first_name varchar(40) NOT NULL, last_name varchar(20) NOT NULL,
  company varchar(80), email varchar(60) NOT NULL, support_rep_id int REFERENCES employee);
INSERT INTO customer SELECT g, 'f', 'l', 'c', 'e', 1 + g % 8 FROM generate_series(1, 59) g;

--= invoice DELETE=invoice_line
CREATE TABLE invoice (invoice_id int NOT NULL PRIMARY KEY, customer_id int NOT NULL REFERENCES customer, invoice_date timestamp NOT NULL,
  billing_address varchar(70), total numeric(10,2) NOT NULL);
INSERT INTO invoice SELECT g, 1 + g % 59, now(), 'b', 1.98 FROM generate_series(1, 412) g;

--= invoice_line
CREATE TABLE invoice_line (invoice_line_id int NOT NULL PRIMARY KEY, invoice_id int NOT NULL REFERENCES invoice,
  track_id int NOT NULL REFERENCES track, unit_price numeric(10,2) NOT NULL, quantity int NOT NULL);
INSERT INTO invoice_line SELECT g, 1 + g % 412, 1 + g % 500, 0.99, 1 FROM generate_series(1, 2240) g;
