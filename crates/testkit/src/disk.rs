//! The operating system's disk with a fuse in front.

use std::fs::File;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop::disk::{Disk, LockMode, Meta, OsDisk};

use crate::fuse::Fuse;

/// A real directory whose calls can be made to fail, or to be the last one of a program.
///
/// Reads fail only after a crash: what a program cannot read it cannot lose. Everything that changes the
/// world is counted.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    fuse: Fuse,
}

impl FaultyDisk {
    /// A disk that obeys this fuse.
    pub fn new(fuse: Fuse) -> Self {
        Self { fuse }
    }

    fn alive(&self) -> io::Result<()> {
        if self.fuse.crashed() {
            Err(io::Error::other("the program is gone (planned)"))
        } else {
            Ok(())
        }
    }
}

impl Disk for FaultyDisk {
    fn read(&self, path: &Utf8Path, max: u64) -> io::Result<Vec<u8>> {
        self.alive()?;
        OsDisk.read(path, max)
    }
    fn read_from(&self, path: &Utf8Path, offset: u64, max: u64) -> io::Result<Vec<u8>> {
        self.alive()?;
        OsDisk.read_from(path, offset, max)
    }
    fn write_atomic(&self, path: &Utf8Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        self.fuse.io(
            || format!("write {path}"),
            || OsDisk.write_atomic(path, bytes, durable),
        )
    }
    fn create_new(&self, path: &Utf8Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.fuse.io(
            || format!("create {path}"),
            || OsDisk.create_new(path, bytes, mode),
        )
    }
    fn append(&self, path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
        self.fuse
            .io(|| format!("append {path}"), || OsDisk.append(path, bytes))
    }
    fn open_append(&self, path: &Utf8Path) -> io::Result<File> {
        self.alive()?;
        OsDisk.open_append(path)
    }
    fn append_to(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.fuse.io(
            || "append a line".to_owned(),
            || OsDisk.append_to(file, bytes),
        )
    }
    fn open_read(&self, path: &Utf8Path) -> io::Result<File> {
        self.alive()?;
        OsDisk.open_read(path)
    }
    fn is_same_file(&self, file: &File, path: &Utf8Path) -> io::Result<bool> {
        self.alive()?;
        OsDisk.is_same_file(file, path)
    }
    fn remove(&self, path: &Utf8Path) -> io::Result<bool> {
        self.fuse
            .io(|| format!("remove {path}"), || OsDisk.remove(path))
    }
    fn remove_dir_all(&self, path: &Utf8Path) -> io::Result<bool> {
        self.fuse.io(
            || format!("remove all {path}"),
            || OsDisk.remove_dir_all(path),
        )
    }
    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        self.fuse
            .io(|| format!("rename {from} {to}"), || OsDisk.rename(from, to))
    }
    fn list(&self, dir: &Utf8Path) -> io::Result<Vec<String>> {
        self.alive()?;
        OsDisk.list(dir)
    }
    fn create_dir_all(&self, dir: &Utf8Path) -> io::Result<()> {
        self.alive()?;
        OsDisk.create_dir_all(dir)
    }
    fn meta(&self, path: &Utf8Path) -> io::Result<Option<Meta>> {
        self.alive()?;
        OsDisk.meta(path)
    }
    fn set_mode(&self, path: &Utf8Path, mode: u32) -> io::Result<()> {
        self.alive()?;
        OsDisk.set_mode(path, mode)
    }
    fn canonicalize(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf> {
        self.alive()?;
        OsDisk.canonicalize(path)
    }
    fn try_lock(&self, path: &Utf8Path, mode: LockMode, create: bool) -> io::Result<Option<File>> {
        self.alive()?;
        OsDisk.try_lock(path, mode, create)
    }
    fn sync(&self, path: &Utf8Path) -> io::Result<()> {
        self.alive()?;
        OsDisk.sync(path)
    }
    fn commit(&self, path: &Utf8Path, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.fuse.io(|| format!("commit {path}"), work)
    }
    fn free_bytes(&self, path: &Utf8Path) -> io::Result<u64> {
        self.alive()?;
        OsDisk.free_bytes(path)
    }
}
