-- Writes a conversation to a file. Adds to the class.
local config = require("pillion.config")
local log = require("pillion.log")

---@param Buffer pillion.ChatBuffer
return function(Buffer)
  -- `:w` exports the conversation. The sidecar makes the text; if it cannot, the lines of the buffer are written.
  ---@param path string
  ---@param done? fun(path: string)
  function Buffer:export(path, done)
    local function save(content)
      local dir = vim.fn.fnamemodify(path, ":p:h")
      vim.fn.mkdir(dir, "p")
      local f, err = io.open(path, "wb")
      if not f then
        return log.tell("error", "cannot write " .. err)
      end
      f:write(content)
      f:close()
      log.tell("info", "exported to " .. vim.fn.fnamemodify(path, ":~:."))
      if done then
        done(path)
      end
    end
    local own = table.concat(vim.api.nvim_buf_get_lines(self.buf, 0, -1, false), "\n") .. "\n"
    if not self.session.id then
      return save(own)
    end
    self.session:call("_pillion/session/export", { format = path:match("%.json$") and "json" or "markdown" }, function(err, r)
      save(err and own or r.content)
    end)
  end

  ---@return string path that `:w` writes without an argument
  function Buffer:export_path()
    local dir = config.options.chat.export_dir or self.session.cwd
    local name = (self.session.title or "chat"):lower():gsub("[^%w]+", "-"):gsub("^%-+", ""):gsub("%-+$", ""):sub(1, 50)
    return ("%s/pillion-%s.md"):format(vim.fn.expand(dir), name == "" and "chat" or name)
  end
end
