-- The role and the database of cloudid. Run it as an administrator of the server; psql replaces :'password'.
CREATE ROLE cloudid LOGIN PASSWORD :'password';
GRANT cloudid TO CURRENT_USER;
CREATE DATABASE cloudid OWNER cloudid ENCODING 'UTF8' TEMPLATE template0;
