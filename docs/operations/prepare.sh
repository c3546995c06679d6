#!/bin/sh
# Makes what compose.yml mounts from a task's folder: sh prepare.sh TASK, in the folder of compose.yml.
# The certificate is by an authority of its own, for trying out: in earnest put a true one into tls.
set -eu
umask 077
task=$1
for role in shuffler analyzer; do
    mkdir "$role"
    cp -R "$task/task.bin" "$task/$role.toml" "$task/$role" "$role/"
done
openssl rand -hex 24 > password
echo "database:5432:sdp:sdp:$(cat password)" > shuffler/pass
echo 'database = "postgresql://sdp@database/sdp?passfile=/data/pass"' >> shuffler/shuffler.toml
mkdir tls
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=trial \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout ca.key -out tls/ca.crt
openssl req -newkey rsa:2048 -nodes -subj /CN=shuffler.example -keyout tls/server.key -out server.csr
cat > server.ext <<'END'
subjectAltName = DNS:shuffler.example, DNS:analyzer.example
extendedKeyUsage = serverAuth
END
openssl x509 -req -in server.csr -CA tls/ca.crt -CAkey ca.key -CAcreateserial -days 30 \
    -extfile server.ext -out tls/server.crt
rm -f ca.key ca.srl tls/ca.srl server.csr server.ext
chmod 644 tls/ca.crt
chmod 755 tls
