#!/usr/bin/env bash
# The source archive of HEAD: tools/dist.sh BUILD (make dist), BUILD/fpac-VERSION.tar.gz and its SHA-256.
#
# git archive dates each file by the commit, and gzip -n adds no name and no date: one commit gives the same bytes.
# Refused: changes that are not committed, a version that CHANGELOG.md does not have, and a tag vVERSION at HEAD of
# another version or while CHANGELOG.md still says that it is unreleased.
set -eu

build=$1
stop() { echo "dist: $*" >&2; exit 1; }

git rev-parse --verify -q HEAD >/dev/null || stop "this is no git checkout"
[ -z "$(git status --porcelain)" ] || stop "there are changes that are not committed: git status"
version=$(git show HEAD:VERSION)
heading=$(git show HEAD:CHANGELOG.md | grep -m 1 -F "## [$version]") || stop "CHANGELOG.md has no section [$version]"
tags=$(git tag --points-at HEAD 'v*')
if [ -n "$tags" ]; then
    [ "$tags" = "v$version" ] || stop "HEAD is tagged $tags, but VERSION says $version"
    case $heading in *[Uu]nreleased*) stop "HEAD is tagged $tags, but CHANGELOG.md says: $heading" ;; esac
fi

mkdir -p "$build"
archive=$build/fpac-$version.tar.gz
git -c tar.umask=0002 -c core.autocrlf=false archive --format=tar --prefix="fpac-$version/" HEAD | gzip -n -9 >"$archive"
sha256sum "$archive"
